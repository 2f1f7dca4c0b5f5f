#include "lib/table/row.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_field.hpp"
#include "lib/base/text.hpp"

namespace hexad::table {

using Json = nlohmann::ordered_json;

std::string list_hint(const Json& object, const std::string& file) {
  for (const auto& [key, value] : object.items()) {
    if (!value.is_array() || value.empty() || !value[0].is_object() || value[0].contains("role")) continue;
    return fmt::format(". If its list '{}' holds the rows: jq -c '.{}[]' {} > rows.jsonl", key, json_text(Json(key)),
                       file);
  }
  return "";
}

const Json* find_field(const Row& row, const std::string& key) { return hexad::find_field(row.value, key); }

const Json& field(const Row& row, const std::string& key) {
  if (const Json* found = find_field(row, key)) return *found;
  std::vector<std::string> keys;
  for (const auto& entry : row.value.items()) keys.push_back(entry.key());
  fail(ErrorKind::data, "{}: no field '{}'; it has: {}{}", row.source, key, joined(keys),
       row.is_only ? list_hint(row.value, row.source.substr(0, row.source.find_last_of(":["))) : "");
}

std::string text_field(const Row& row, const std::string& key) {
  const Json& value = field(row, key);
  if (value.is_structured() || value.is_null())
    fail(ErrorKind::data, "{}: field '{}' is {}, want text", row.source, key, value.type_name());
  return value.is_string() ? value.get<std::string>() : data_text(value);
}

}  // namespace hexad::table
