// A field of a JSON object by a path.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace hexad {

// The field `key`, or for "a.b" without a field of that name the field b of the object a; null if there is none.
inline const nlohmann::ordered_json* find_field(const nlohmann::ordered_json& object, const std::string& key) {
  if (const auto found = object.find(key); found != object.end()) return &*found;
  const size_t dot = key.find('.');
  if (dot == key.npos) return nullptr;
  const auto outer = object.find(key.substr(0, dot));
  return outer != object.end() && outer->is_object() ? find_field(*outer, key.substr(dot + 1)) : nullptr;
}

}  // namespace hexad
