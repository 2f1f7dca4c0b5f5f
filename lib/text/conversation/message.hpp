// Messages of a conversation, as chat templates take them: {"role", "content", "tool_calls", ...}.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace hexad::text {

nlohmann::ordered_json message(const std::string& role, const std::string& content);

// Throws Error(data) unless `messages`, the field `key` of the row `source`, is a list of at least one object with a
// role, and with a content that is absent, null, text or a list of objects, and with tool_calls that are absent, null
// or such a list.
void check_messages(const nlohmann::ordered_json& messages, const std::string& source, const std::string& key);

// Whether it is a list of objects and of nothing else.
bool is_objects(const nlohmann::ordered_json& list);

// What a message's content says, be it text, parts of text or null.
std::string content_text(const nlohmann::ordered_json& content);
// The same of a message, which may have none.
std::string said(const nlohmann::ordered_json& message);

// What `render` makes of messages. A template for texts alone writes a content of parts as Python would, or fails: it
// gets the text of the parts, where all are text.
std::string render_parts(const nlohmann::ordered_json& messages,
                         const std::function<std::string(const nlohmann::ordered_json& messages)>& render);

// Whether it is what the assistant says, and no call of a tool: the last message of a conversation, if it is one, is
// the answer that the messages before it ask for.
bool is_answer(const nlohmann::ordered_json& message);

}  // namespace hexad::text
