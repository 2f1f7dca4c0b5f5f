#include "lib/text/template/chat_template.hpp"

#include "lib/base/error.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/syntax/parser.hpp"
#include "lib/text/template/value/text_split.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

// Marks the end of the last message's content, so that it is found again in the text.
constexpr std::string_view continue_tag = "CONTINUE_FINAL_MESSAGE_TAG ";

constexpr std::string_view reasoning_fields[] = {"reasoning_content", "thinking", "reasoning"};

// The names under which templates read a message's reasoning all get it.
void alias_reasoning(Json& message) {
  for (std::string_view field : reasoning_fields) {
    const auto found = message.find(field);
    if (found == message.end()) continue;
    const Json reasoning = *found;
    message["reasoning_content"] = reasoning;
    if (!message.contains("thinking")) message["thinking"] = reasoning;
    return;
  }
}

Json prepare_messages(const Json& messages, const std::string& origin) {
  if (!messages.is_array())
    fail(ErrorKind::data, "{}: messages must be an array, got {}", origin, messages.type_name());
  if (messages.empty()) fail(ErrorKind::data, "{}: the conversation is empty: it needs at least one message", origin);
  Json prepared = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      fail(ErrorKind::data, "{}: message {} must be an object with role and content, got {}", origin, i,
           messages[i].type_name());
    }
    Json message = Json::object();
    for (const auto& [key, value] : messages[i].items()) {
      if (!value.is_null()) message[key] = value;
    }
    alias_reasoning(message);
    prepared.push_back(std::move(message));
  }
  return prepared;
}

// Appends the tag to the last message's content (to its last text part, when it is a list); returns that content.
std::string tag_final_message(Json& messages, const jinja::Template& parsed) {
  Json& message = messages.back();
  if (!message.contains("content")) {
    fail(ErrorKind::data, "{}: continue_final_message is set, but the final message has no \"content\"", parsed.origin);
  }
  if (parsed.source.find("content") == std::string::npos) {
    fail(ErrorKind::data, "{}: continue_final_message is set, but the template does not read \"content\"",
         parsed.origin);
  }
  Json* text = &message["content"];
  if (text->is_array()) {
    text = nullptr;
    for (Json& part : message["content"]) {
      if (part.is_object() && part.contains("text")) text = &part["text"];
    }
  }
  if (!text || !text->is_string()) {
    fail(ErrorKind::data, "{}: continue_final_message is set, but the final message has no text to continue",
         parsed.origin);
  }
  const std::string content = *text;
  *text = content + std::string(continue_tag);
  return content;
}

std::string cut_at_tag(std::string text, const std::string& content, const std::string& origin) {
  const std::string_view bare = jinja::strip(continue_tag, true, true);
  const size_t at = text.rfind(bare);
  if (at == std::string::npos || text.find(jinja::strip(content, true, true)) == std::string::npos) {
    fail(ErrorKind::data,
         "{}: continue_final_message is set, but the final message does not appear in the text as it is", origin);
  }
  const bool spacing_kept = std::string_view(text).substr(at).starts_with(continue_tag);
  text.resize(at);
  return spacing_kept ? text : std::string(jinja::strip(text, false, true));
}

void set_variables(jinja::Evaluator& evaluator, const Json& messages, const ChatOptions& options) {
  for (const auto& [name, value] : options.special_tokens)
    evaluator.set(name, jinja::make_text(value, evaluator.budget));
  for (const auto& [name, value] : options.extra.items())
    evaluator.set(name, jinja::from_json(value, evaluator.budget));
  evaluator.set("messages", jinja::from_json(messages, evaluator.budget));
  evaluator.set("tools", jinja::from_json(options.tools, evaluator.budget));
  if (!options.documents.is_null() || !options.extra.contains("documents"))
    evaluator.set("documents", jinja::from_json(options.documents, evaluator.budget));
  evaluator.set("add_generation_prompt", options.add_generation_prompt);
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view source, std::string origin) {
  auto parsed = std::make_shared<jinja::Template>();
  parsed->source = source;
  parsed->origin = std::move(origin);
  try {
    parsed->body = jinja::Parser(jinja::tokenize(source)).parse();
  } catch (const jinja::SyntaxFault& error) {
    fail(ErrorKind::data, "{}:{}: {}", parsed->origin, error.line(), error.what());
  }
  return ChatTemplate(std::move(parsed));
}

std::string ChatTemplate::render(const Json& messages, const ChatOptions& options) const {
  const std::string& origin = parsed_->origin;
  Json prepared = prepare_messages(messages, origin);
  if (options.continue_final_message && options.add_generation_prompt) {
    fail(ErrorKind::config, "{}: continue_final_message and add_generation_prompt exclude each other", origin);
  }
  if (!options.extra.is_object())
    fail(ErrorKind::config, "{}: further template variables must be an object, got {}", origin,
         options.extra.type_name());
  for (const char* name : {"messages", "tools", "add_generation_prompt"}) {
    if (!options.extra.contains(name)) continue;
    fail(ErrorKind::config,
         "{}: '{}' is given twice: by the conversation, and as a further template variable (chat_template_kwargs)",
         origin, name);
  }
  const std::string content = options.continue_final_message ? tag_final_message(prepared, *parsed_) : "";

  jinja::Evaluator evaluator(options.limits);
  try {
    set_variables(evaluator, prepared, options);
  } catch (const jinja::Fault& error) {
    fail(ErrorKind::data, "{}: the messages cannot be rendered: {}", origin, error.what());
  }
  std::string text = evaluator.render(*parsed_);
  return options.continue_final_message ? cut_at_tag(std::move(text), content, origin) : text;
}

const std::string& ChatTemplate::source() const { return parsed_->source; }

}  // namespace hexad::text
