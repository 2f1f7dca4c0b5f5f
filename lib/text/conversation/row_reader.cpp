#include "lib/text/conversation/row_reader.hpp"

#include <map>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_field.hpp"
#include "lib/base/text.hpp"
#include "lib/text/conversation/message.hpp"
#include "lib/text/conversation/row_field.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

// Messages that end with an answer, where no column has it, or ask for the one in the column.
RowText conversation(Json messages, const Json& row, const std::string& source, const std::string& answer) {
  RowText out;
  out.messages = std::move(messages);
  if (!answer.empty()) {
    out.answer = row_text(row, answer, source);
  } else if (is_answer(out.messages.back())) {
    out.answer = said(out.messages.back());
  }
  return out;
}

// ShareGPT's names of who speaks.
std::string role_of(const std::string& from, const std::string& source, size_t i) {
  static const std::map<std::string, std::string> roles = {
      {"human", "user"},          {"user", "user"},     {"gpt", "assistant"}, {"chatgpt", "assistant"},
      {"assistant", "assistant"}, {"system", "system"}, {"tool", "tool"},     {"observation", "tool"}};
  if (const auto found = roles.find(from); found != roles.end()) return found->second;
  fail(ErrorKind::data,
       "{}: conversations[{}].from: got '{}', want human, gpt, system or tool. Calls of tools are read from a column "
       "'messages' with roles and tool_calls",
       source, i, from);
}

Json share_gpt_message(const Json& entry, const std::string& source, size_t i) {
  if (entry.is_object() && entry.contains("role")) return entry;
  const auto text = [&](const char* key) -> const Json* {
    const auto found = entry.is_object() ? entry.find(key) : entry.end();
    return found != entry.end() && found->is_string() ? &*found : nullptr;
  };
  const Json *from = text("from"), *value = text("value");
  if (!from || !value)
    fail(ErrorKind::data, "{}: conversations[{}]: want {{\"from\": text, \"value\": text}}, got {}", source, i,
         data_text(entry));
  return message(role_of(from->get<std::string>(), source, i), value->get<std::string>());
}

void add_system(Json& messages, const Json& row, const std::string& source) {
  if (says(row, "system")) messages.insert(messages.begin(), message("system", row_text(row, "system", source)));
}

}  // namespace

RowText read_conversation(const Json& row, const std::string& source, const std::string& answer) {
  check_messages(row.value("messages", Json()), source, "messages");
  return conversation(row.at("messages"), row, source, answer);
}

RowText read_share_gpt(const Json& row, const std::string& source, const std::string& answer) {
  const Json* said = find_field(row, "conversations");
  Json messages = Json::array();
  for (size_t i = 0; said && said->is_array() && i < said->size(); ++i)
    messages.push_back(share_gpt_message((*said)[i], source, i));
  check_messages(said && said->is_array() ? messages : said ? *said : Json(), source, "conversations");
  add_system(messages, row, source);
  return conversation(std::move(messages), row, source, answer);
}

RowText read_prompt(const Json& row, const std::string& source, const std::string& answer) {
  const bool is_text = !is_list(row, "prompt");
  Json messages = row_messages(row, "prompt", "user", source);
  if (answer.empty()) {
    RowText out = conversation(std::move(messages), row, source, "");
    out.is_plain = is_text;
    return out;
  }
  if (is_answer(messages.back()))
    fail(ErrorKind::data,
         "{}: 'prompt' ends with an assistant's message, and '{}' is the answer: a message that the model goes on with "
         "is not read. Put it at the beginning of the answer",
         source, answer);
  RowText out;
  out.is_plain = is_text;
  out.prompt_messages = messages.size();
  out.messages = std::move(messages);
  if (answer != "completion") {
    out.answer = row_text(row, answer, source);
    return out;
  }
  if (is_text == is_list(row, answer))
    fail(ErrorKind::data,
         "{}: of 'prompt' and 'completion' one is text and the other a list of messages, want both "
         "alike",
         source);
  const Json completion = row_messages(row, answer, "assistant", source);
  out.messages.insert(out.messages.end(), completion.begin(), completion.end());
  if (is_answer(out.messages.back())) out.answer = said(out.messages.back());
  return out;
}

RowText read_question(const Json& row, const std::string& source, const std::string& question,
                      const std::string& answer) {
  RowText out = conversation(Json::array({message("user", row_text(row, question, source))}), row, source, answer);
  out.prompt_messages = 1;
  return out;
}

RowText read_alpaca(const Json& row, const std::string& source, const std::string& answer) {
  if (says(row, "history"))
    fail(ErrorKind::data, "{}: earlier turns in a field 'history' are not read; want the conversation as 'messages'",
         source);
  std::string question = row_text(row, "instruction", source);
  if (says(row, "input")) question += "\n" + row_text(row, "input", source);
  RowText out = conversation(Json::array({message("user", question)}), row, source, answer);
  add_system(out.messages, row, source);
  out.prompt_messages = out.messages.size();
  return out;
}

RowText read_text(const Json& row, const std::string& source) {
  RowText out;
  out.messages = Json::array({message("assistant", row_text(row, "text", source))});
  out.is_plain = true;
  return out;
}

}  // namespace hexad::text
