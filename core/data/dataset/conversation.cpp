#include "core/data/dataset/conversation.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/text/conversation/message.hpp"
#include "lib/text/conversation/row_format.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;
using text::message;

// The answer in the column that output_key names.
std::string named_answer(const Row& row, const std::string& key) {
  std::string answer = text_field(row, key);
  if (!trimmed(answer).empty()) return answer;
  fail(ErrorKind::data,
       "{}: field '{}' is empty, and output_key names it as the answer. Give the row an answer or leave it out; where "
       "rows need none, leave output_key out",
       row.source, key);
}

// A value that may stand as JSON text.
Json read_text(const Json& value, const std::string& where) {
  if (!value.is_string()) return value;
  const std::string text = value.get<std::string>();
  return trimmed(text).empty() ? Json() : parse_data(text, where);
}

Json without(Json fields, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (!key.empty()) fields.erase(key);
  }
  return fields.empty() ? Json() : fields;
}

}  // namespace

std::optional<std::string> own_key(const config::DatasetConfig& config, const std::string& key) {
  const auto found = config.spec.find(key);
  if (found == config.spec.end() || found->is_null()) return std::nullopt;
  if (!found->is_string())
    fail(ErrorKind::config, "dataset {}: {}: want text, got {}", config.dataset_name, key, json_text(*found));
  return found->get<std::string>();
}

Json tools_of(const Row& row, const std::string& key) {
  const Json* value = find_field(row, key);
  if (!value) return {};
  const std::string where = fmt::format("{}: field '{}'", row.source, key);
  Json tools = read_text(*value, where);
  if (tools.is_array()) {
    for (Json& tool : tools) tool = read_text(tool, where);
  }
  const auto is_tool = [](const Json& tool) { return !tool.contains("function") || tool.at("function").is_object(); };
  if (tools.is_null() || (text::is_objects(tools) && std::ranges::all_of(tools, is_tool))) return tools;
  fail(ErrorKind::data, "{}: want a list of tools (objects), or one as JSON text, got {}", where, data_text(*value));
}

Record response_record(const Row& row, const config::DatasetConfig& config) {
  const std::string input_key = config.input_key.value_or("input"), output_key = config.output_key.value_or("output");
  Record record;
  record.messages = Json::array({message("user", text_field(row, input_key))});
  if (!output_key.empty()) {
    record.answer = config.output_key ? named_answer(row, output_key) : text_field(row, output_key);
    record.messages.push_back(message("assistant", record.answer));
  }
  record.source = row.source;
  record.metadata = without(row.value, {input_key, output_key});
  return record;
}

Record conversation_record(const Row& row, const config::DatasetConfig& config) {
  const std::string chat_key = own_key(config, "chat_key").value_or("messages");
  const std::string tool_key = own_key(config, "tool_key").value_or("tools");
  const std::string answer_key = config.output_key.value_or("");
  const std::optional<std::string> system_key = own_key(config, "system_key");
  const std::optional<std::string> system_prompt = own_key(config, "system_prompt");
  const Json& messages = field(row, chat_key);
  text::check_messages(messages, row.source, chat_key);

  Record record;
  record.source = row.source;
  if (system_key && find_field(row, *system_key)) {
    record.messages.push_back(message("system", text_field(row, *system_key)));
  } else if (system_prompt) {
    record.messages.push_back(message("system", *system_prompt));
  }
  for (const Json& entry : messages) record.messages.push_back(entry);
  const Json& last = record.messages.back();
  if (!answer_key.empty()) {
    record.answer = named_answer(row, answer_key);
  } else if (text::is_answer(last)) {
    record.answer = text::said(last);
  }
  record.tools = tools_of(row, tool_key);
  record.metadata = without(row.value, {chat_key, tool_key, system_key.value_or(chat_key), answer_key});
  return record;
}

Record record_of(text::RowText said, const Row& row) {
  Record record{std::move(said), row.source, {}, tools_of(row)};
  if (record.tools.empty()) record.tools = nullptr;  // templates of Llama's make something of an empty list
  return record;
}

std::optional<text::RowFormat> recognised(const std::vector<Row>& rows, const config::DatasetConfig& config) {
  if (config.input_key) return std::nullopt;
  std::set<std::string> columns;
  for (const Row& row : rows) {
    for (const auto& [key, value] : row.value.items()) columns.insert(key);
  }
  text::RowWish wish{text::RowUse::prompts, config.output_key};
  if (config.processor == "sft_processor") wish.use = text::RowUse::conversations;
  if (config.processor == "preference_processor") wish.use = text::RowUse::pairs;
  return text::row_format(columns, rows.front().value, rows.front().source, wish);
}

Record recognised_record(const Row& row, const text::RowFormat& format, const config::DatasetConfig& config) {
  Record record = record_of(format.read(row.value, row.source), row);
  if (!config.output_key.value_or("").empty()) record.answer = named_answer(row, *config.output_key);
  record.metadata = without(row.value, format.columns);
  return record;
}

}  // namespace hexad::data
