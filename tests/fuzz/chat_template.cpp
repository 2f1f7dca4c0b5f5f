// A chat template, and behind a NUL byte the messages for it as JSON. The limits are tighter than in use: an input that
// reaches them must end here in well under a second.
#include "lib/text/template/chat_template.hpp"
#include "lib/base/json.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;
using text::ChatOptions;
using text::ChatTemplate;

namespace {

const char* const kMessages = R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"},
  {"role": "assistant", "content": "", "reasoning_content": "a sum", "tool_calls": [{"id": "a", "type": "function",
    "function": {"name": "add", "arguments": {"x": 1, "y": [1.5, null, "z"]}}}]},
  {"role": "tool", "content": "2", "tool_call_id": "a"}, {"role": "assistant", "content": "\u00e9 2"}])";
const char* const kTools = R"([{"type": "function", "function": {"name": "add", "description": "adds",
  "parameters": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}}])";

ChatOptions bounded() {
  ChatOptions options;
  options.tools = parse_json<ChatTemplate::Json>(kTools);
  options.add_generation_prompt = true;
  options.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  options.limits = {/*steps=*/200'000, /*memory_bytes=*/32 << 20, /*output_bytes=*/1 << 20, /*depth=*/400};
  return options;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ChatOptions options = bounded();
  static const auto usual = parse_json<ChatTemplate::Json>(kMessages);
  const std::string_view source = fuzz::two_texts(data, size).first, given = fuzz::two_texts(data, size).second;
  const auto messages = given.empty() ? usual : try_parse_json<ChatTemplate::Json>(given);
  if (messages.is_discarded()) return 0;
  fuzz::attempt([&] { ChatTemplate::parse(source, "template").render(messages, options); });
  return 0;
}
