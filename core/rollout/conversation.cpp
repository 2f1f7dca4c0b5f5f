#include "core/rollout/conversation.hpp"

namespace hexad::rollout {

Conversation::Conversation(const data::Datum& prompt, int64_t group)
    : prompt(&prompt),
      group(group),
      prompt_tokens(static_cast<int64_t>(prompt.token_ids.size())),
      tokens(prompt.token_ids.begin(), prompt.token_ids.end()),
      mask(tokens.size(), 0.0f),
      logprobs(tokens.size(), 0.0f) {}

void Conversation::add_response(std::span<const int32_t> written, std::span<const float> their_logprobs,
                                bool is_truncated, const ModelText& model_text) {
  response_at = static_cast<int64_t>(tokens.size());
  tokens.insert(tokens.end(), written.begin(), written.end());
  mask.resize(tokens.size(), 1.0f);
  logprobs.insert(logprobs.end(), their_logprobs.begin(), their_logprobs.end());
  response = model_text.tokenizer->decode(written, /*skip_special_tokens=*/true);
  text += response;
  written_tokens += static_cast<int64_t>(written.size());
  truncated = is_truncated;
  ++turns;
}

void Conversation::add_reply(std::span<const int32_t> given, const std::string& content) {
  tokens.insert(tokens.end(), given.begin(), given.end());
  mask.resize(tokens.size(), 0.0f);
  logprobs.resize(tokens.size(), 0.0f);
  text += "\n" + content + "\n";
}

}  // namespace hexad::rollout
