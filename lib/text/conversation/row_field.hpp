// Fields of a row that are text or messages. A `key` may lead into objects, "a.b" (lib/base/json_field.hpp).
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace hexad::text {

// A field as text: strings as they are, other scalars as they are written. Throws Error(data) that names `source`.
std::string row_text(const nlohmann::ordered_json& row, const std::string& key, const std::string& source);
// A field that is a list of messages, or text, which is then one message of `role`. Throws Error(data).
nlohmann::ordered_json row_messages(const nlohmann::ordered_json& row, const std::string& key, const char* role,
                                    const std::string& source);
bool is_list(const nlohmann::ordered_json& row, const std::string& key);
// Whether the field says something: it is there, and neither null nor empty.
bool says(const nlohmann::ordered_json& row, const std::string& key);

}  // namespace hexad::text
