// The contents of \boxed{..} and \fbox{..}.
#pragma once
#include <string>
#include <string_view>

namespace hexad::math {

// All contents, joined by commas; with `last_only` those of the last box and of boxes that stand right before it:
// within ten characters, or within seventy and joined by "and", "or", "," or ";". Repetitions once. A text without
// boxes comes back as it is; a last box that does not close gives all behind it.
std::string box_contents(std::string_view text, bool last_only);

}  // namespace hexad::math
