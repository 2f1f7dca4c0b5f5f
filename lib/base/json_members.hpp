// A JSON object cut into its members without parsing their values: a manifest holds much that a run never looks at.
#pragma once
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hexad {

// Name and text of the value, in the order of the object. Views into the object's text.
using JsonMembers = std::vector<std::pair<std::string_view, std::string_view>>;

// Nothing for what is no object, has no matching brackets or quotes, or has a name with a backslash in it: only a
// parser can say more of such a text. A value's own text may still be no JSON, and a name may stand twice.
std::optional<JsonMembers> json_members(std::string_view object);

}  // namespace hexad
