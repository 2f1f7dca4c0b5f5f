// Chat templates: messages in, prompt text out, as transformers' apply_chat_template(tokenize=False) gives it.
// The templates are Jinja; this is an interpreter for the part of Jinja that templates of real models use. What it
// does not know it refuses with the template's line. A template is untrusted: it has no access to anything but its
// arguments, and time, memory and output are bounded (RenderLimits).
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hexad::text {

namespace jinja {
struct Template;
}

// Bounds on one rendering; beyond them it fails with an error. The defaults are far above what real templates need.
struct RenderLimits {
  uint64_t steps = 20'000'000;           // evaluated nodes, loop rounds and 32-byte pieces of text handled
  uint64_t memory_bytes = 512ull << 20;  // sum of everything ever allocated for values
  uint64_t output_bytes = 64ull << 20;   // length of the text
  int depth = 400;                       // nested evaluations (expressions, blocks, macro calls)
};

struct ChatOptions {
  using Json = nlohmann::ordered_json;  // ordered: `tojson` prints keys in the order they came

  Json tools;      // list of JSON schemas; null: the template sees `none`
  Json documents;  // list of objects; null: the template sees `none`
  bool add_generation_prompt = false;
  // Ends the text right after the last message's content, so that generation continues that message.
  bool continue_final_message = false;
  std::map<std::string, std::string> special_tokens;  // bos_token, eos_token ...; absent: undefined in the template
  Json extra = Json::object();  // further variables (enable_thinking, date_string ...); they win over the tokens,
                                // and none may be named messages, tools or add_generation_prompt
  RenderLimits limits;
};

// A parsed template; immutable, cheap to copy, safe to share between threads.
class ChatTemplate {
 public:
  using Json = nlohmann::ordered_json;

  // Parses `source`; `origin` (a path or name) prefixes every message: "origin:line: ...". Throws hexad::Error.
  static ChatTemplate parse(std::string_view source, std::string origin);

  // The template of a model directory: chat_template.jinja and additional_chat_templates/NAME.jinja, else
  // tokenizer_config.json's "chat_template" (text, or a list of {"name", "template"}). Of several "tool_use" serves
  // when `with_tools` and it exists, else "default". Empty when the model has none.
  static std::optional<ChatTemplate> for_model(const std::filesystem::path& directory, bool with_tools = false);

  // The one of that name; empty when the model has none.
  static std::optional<ChatTemplate> named(const std::filesystem::path& directory, const std::string& name);

  // The text for a conversation: an array of objects with "role" and usually "content". Keys whose value is null are
  // dropped, and reasoning_content / thinking / reasoning are aliases, as in transformers. Throws hexad::Error.
  std::string render(const Json& messages, const ChatOptions& options = {}) const;

  const std::string& source() const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Template> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const jinja::Template> parsed_;
};

}  // namespace hexad::text
