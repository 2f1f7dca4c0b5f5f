#include "core/rollout/reply.hpp"

#include "lib/base/error.hpp"

namespace hexad::rollout {

std::vector<int32_t> reply_tokens(const ModelText& text, const environment::Reply& reply, int32_t last_token) {
  const auto encode = [&](std::string_view piece) {
    return text.tokenizer->encode(piece, /*add_special_tokens=*/false);
  };
  if (!text.chat_template) return encode(reply.content);
  // A conversation with a response that is known by its text: what the template writes behind it is what is wanted.
  const std::string response = "the-response-of-this-turn";
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", "?"}},
                                           {{"role", "assistant"}, {"content", response}},
                                           {{"role", reply.role}, {"content", reply.content}}};
  const std::string rendered = text.tools().render(messages, {.add_generation_prompt = true, .tools = {}});
  const size_t at = rendered.find(response);
  if (at == rendered.npos)
    fail(ErrorKind::data,
         "the chat template leaves out what the assistant said before a message of role '{}': a rollout of several "
         "turns needs a template that shows it (policy.tokenizer.chat_template)",
         reply.role);
  std::string_view behind = std::string_view(rendered).substr(at + response.size());
  const std::string last = text.tokenizer->decode(std::vector{last_token}, /*skip_special_tokens=*/false);
  const bool is_eos = std::find(text.eos_ids.begin(), text.eos_ids.end(), last_token) != text.eos_ids.end();
  if (is_eos && behind.starts_with(last)) behind.remove_prefix(last.size());
  return encode(behind);
}

}  // namespace hexad::rollout
