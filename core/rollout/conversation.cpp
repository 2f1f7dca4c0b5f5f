#include "core/rollout/conversation.hpp"

namespace hexad::rollout {

Conversation::Conversation(data::SharedDatum prompt, int64_t group)
    : prompt(std::move(prompt)),
      group(group),
      prompt_tokens(std::ssize(this->prompt->token_ids)),
      tokens(this->prompt->token_ids.begin(), this->prompt->token_ids.end()),
      mask(tokens.size(), 0.0f),
      logprobs(tokens.size(), 0.0f),
      versions(tokens.size(), -1) {}

void Conversation::add_response(const Response& written, const ModelText& model_text) {
  response_at = static_cast<int64_t>(tokens.size());
  tokens.insert(tokens.end(), written.tokens.begin(), written.tokens.end());
  mask.resize(tokens.size(), 1.0f);
  logprobs.insert(logprobs.end(), written.logprobs.begin(), written.logprobs.end());
  versions.insert(versions.end(), written.weight_versions.begin(), written.weight_versions.end());
  response = model_text.tokenizer->decode(written.tokens, /*skip_special_tokens=*/true);
  text += response;
  written_tokens += static_cast<int64_t>(written.tokens.size());
  cut_off = written.truncated, truncated |= cut_off;
  ++turns;
}

void Conversation::add_reply(std::span<const int32_t> given, const std::string& content) {
  tokens.insert(tokens.end(), given.begin(), given.end());
  mask.resize(tokens.size(), 0.0f);
  logprobs.resize(tokens.size(), 0.0f);
  versions.resize(tokens.size(), -1);
  text += "\n" + content + "\n";
}

}  // namespace hexad::rollout
