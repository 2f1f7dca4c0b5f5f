#include "lib/text/conversation/row_field.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_field.hpp"
#include "lib/base/text.hpp"
#include "lib/text/conversation/message.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string row_text(const Json& row, const std::string& key, const std::string& source) {
  const Json* value = find_field(row, key);
  if (!value) {
    std::vector<std::string> keys;
    for (const auto& entry : row.items()) keys.push_back(entry.key());
    fail(ErrorKind::data, "{}: no field '{}'; it has: {}", source, key, joined(keys));
  }
  if (value->is_structured() || value->is_null())
    fail(ErrorKind::data, "{}: field '{}' is {}, want text", source, key, value->type_name());
  return value->is_string() ? value->get<std::string>() : data_text(*value);
}

Json row_messages(const Json& row, const std::string& key, const char* role, const std::string& source) {
  if (!is_list(row, key)) return Json::array({message(role, row_text(row, key, source))});
  const Json& messages = *find_field(row, key);
  check_messages(messages, source, key);
  return messages;
}

bool is_list(const Json& row, const std::string& key) {
  const Json* value = find_field(row, key);
  return value && value->is_array();
}

bool says(const Json& row, const std::string& key) {
  const Json* value = find_field(row, key);
  return value && !value->empty() && !(value->is_string() && value->get_ref<const std::string&>().empty());
}

}  // namespace hexad::text
