// JSON that a stranger wrote: no key twice in an object, and no more levels than the reader needs.
#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hexad {

// At most `deepest` levels. Throws Error(plugin); `where` names the text.
nlohmann::ordered_json parse_bounded(std::string_view text, size_t deepest, const std::string& where);

}  // namespace hexad
