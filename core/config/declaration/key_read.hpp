// One key of a plugin's declaration.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "core/config/schema/schema.hpp"

namespace hexad::config {

// "int or null" -> kInt | kNull; "list of text": kList with elements of that kind; "map of int" likewise, an open map.
// Nothing if a word is none of the kinds.
struct TypeText {
  Kinds kinds = kAny, element_kinds = kAny, value_kinds = kAny;
  bool open = false;
};
std::optional<TypeText> parse_type(std::string_view text);

// The key that the members describe (sdk/CONFIG.md); `section` is the declared key above it, or null. Throws
// Error(plugin) that begins with `where` and names the member.
Key read_key(const std::string& path, const nlohmann::ordered_json& members, const Key* section,
             const std::string& where);

// YAML that reads back as the value: 5e-06, null, "text with: a colon".
std::string yaml_of(const nlohmann::ordered_json& value);

}  // namespace hexad::config
