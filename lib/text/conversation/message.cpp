#include "lib/text/conversation/message.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

bool is_text_parts(const Json& message) {
  const auto content = message.find("content");
  return content != message.end() && is_objects(*content) && !content->empty() &&
         std::ranges::all_of(*content, [](const Json& part) { return part.value("type", Json()) == "text"; });
}

}  // namespace

bool is_objects(const Json& list) {
  return list.is_array() && std::ranges::all_of(list, [](const Json& item) { return item.is_object(); });
}

Json message(const std::string& role, const std::string& content) { return {{"role", role}, {"content", content}}; }

std::string content_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (const Json& part : content) {
    const auto found = part.find("text");
    if (found != part.end() && found->is_string()) text += found->get_ref<const std::string&>();
  }
  return text;
}

std::string said(const Json& message) {
  const auto content = message.find("content");
  return content == message.end() ? "" : content_text(*content);
}

std::string render_parts(const Json& messages, const std::function<std::string(const Json& messages)>& render) {
  if (std::ranges::none_of(messages, is_text_parts)) return render(messages);
  Json joined = messages;
  for (Json& message : joined)
    if (is_text_parts(message)) message["content"] = said(message);
  std::string text;
  try {
    text = render(messages);
  } catch (const Error&) {
    return render(joined);
  }
  return text.find("'type': 'text'") == text.npos ? text : render(joined);
}

bool is_answer(const Json& message) {
  const auto calls = message.find("tool_calls");
  return message.at("role") == "assistant" && (calls == message.end() || calls->empty());
}

void check_messages(const Json& messages, const std::string& source, const std::string& key) {
  if (!messages.is_array() || messages.empty()) {
    fail(ErrorKind::data, "{}: field '{}' is {}, want a list of messages", source, key,
         messages.is_array() ? "empty" : messages.type_name());
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& entry = messages[i];
    if (!entry.is_object() || !entry.contains("role") || !entry.at("role").is_string()) {
      fail(ErrorKind::data, "{}: {}[{}]: want an object with a role, got {}", source, key, i, data_text(entry));
    }
    const auto content = entry.find("content");
    if (content != entry.end() && !content->is_null() && !content->is_string() && !is_objects(*content))
      fail(ErrorKind::data, "{}: {}[{}].content: want text, or a list of parts (objects), got {}", source, key, i,
           data_text(*content));
    const auto calls = entry.find("tool_calls");
    if (calls != entry.end() && !calls->is_null() && !is_objects(*calls))
      fail(ErrorKind::data, "{}: {}[{}].tool_calls: want a list of calls (objects), got {}{}", source, key, i,
           data_text(*calls), calls->is_string() ? "; of JSON text jq makes it with fromjson" : "");
  }
}

}  // namespace hexad::text
