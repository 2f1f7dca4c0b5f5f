#include "core/data/dataset/conversation.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

Json message(const std::string& role, const std::string& content) { return {{"role", role}, {"content", content}}; }

}  // namespace

std::optional<std::string> own_key(const config::DatasetConfig& config, const std::string& key) {
  const auto found = config.spec.find(key);
  if (found == config.spec.end() || found->is_null()) return std::nullopt;
  if (!found->is_string())
    fail(ErrorKind::config, "dataset {}: {}: want text, got {}", config.dataset_name, key, json_text(*found));
  return found->get<std::string>();
}

void check_messages(const Json& messages, const Row& row, const std::string& key) {
  if (!messages.is_array() || messages.empty()) {
    fail(ErrorKind::data, "{}: field '{}' is {}, want a list of messages", row.source, key,
         messages.is_array() ? "empty" : messages.type_name());
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& entry = messages[i];
    if (!entry.is_object() || !entry.contains("role") || !entry.at("role").is_string()) {
      fail(ErrorKind::data, "{}: {}[{}]: want an object with a role, got {}", row.source, key, i, json_text(entry));
    }
  }
}

Record response_record(const Row& row, const config::DatasetConfig& config) {
  const std::string input_key = config.input_key.value_or("input"), output_key = config.output_key.value_or("output");
  Record record;
  record.answer = text_field(row, output_key);
  record.messages = Json::array({message("user", text_field(row, input_key)), message("assistant", record.answer)});
  record.source = row.source;
  record.metadata = row.value;
  record.metadata.erase(input_key);
  record.metadata.erase(output_key);
  if (record.metadata.empty()) record.metadata = nullptr;
  return record;
}

Record conversation_record(const Row& row, const config::DatasetConfig& config) {
  const std::string chat_key = own_key(config, "chat_key").value_or("messages");
  const std::string tool_key = own_key(config, "tool_key").value_or("tools");
  const std::optional<std::string> system_key = own_key(config, "system_key");
  const std::optional<std::string> system_prompt = own_key(config, "system_prompt");
  if (!row.value.contains(chat_key)) text_field(row, chat_key);  // fails with the keys there are
  const Json& messages = row.value.at(chat_key);
  check_messages(messages, row, chat_key);

  Record record;
  record.source = row.source;
  if (system_key && row.value.contains(*system_key)) {
    record.messages.push_back(message("system", text_field(row, *system_key)));
  } else if (system_prompt) {
    record.messages.push_back(message("system", *system_prompt));
  }
  for (const Json& entry : messages) record.messages.push_back(entry);
  const Json& last = record.messages.back();
  if (last.at("role") == "assistant" && last.contains("content") && last.at("content").is_string()) {
    record.answer = last.at("content");
  }
  if (row.value.contains(tool_key)) record.tools = row.value.at(tool_key);
  record.metadata = row.value;
  for (const std::string& key : {chat_key, tool_key, system_key.value_or(chat_key)}) record.metadata.erase(key);
  if (record.metadata.empty()) record.metadata = nullptr;
  return record;
}

}  // namespace hexad::data
