// What stands between two responses of a conversation, as token ids.
#pragma once
#include "core/environment/environment.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::rollout {

// The tokens that follow a response which ended with `last_token`, up to where the next response begins: the end of the
// response's message if the model has not written it, the reply as the chat template writes it, and the opening of
// the next response. Tokens of the conversation so far stay as they were sampled. Without a chat template the reply's text
// alone. Throws Error(data) if the template does not show a response's text as it is.
std::vector<int32_t> reply_tokens(const ModelText& text, const environment::Reply& reply, int32_t last_token);

}  // namespace hexad::rollout
