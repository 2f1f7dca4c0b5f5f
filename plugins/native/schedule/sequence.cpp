#include "plugins/native/schedule/sequence.hpp"

#include <fmt/format.h>
#include <hexad/services.hpp>

namespace hexad::native {

std::unique_ptr<Sequence> make_sequence(const hexad_request& from, int64_t vocab_size) {
  const auto refuse = [&](const std::string& reason) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "request %llu: %s", static_cast<unsigned long long>(from.id), reason.c_str());
  };
  auto sequence = std::make_unique<Sequence>();
  Request& to = sequence->request;
  to.id = from.id, to.group = from.group, to.seed = from.seed;
  if (from.prompt_size < 1) refuse("the prompt is empty");
  to.prompt.assign(from.prompt, from.prompt + from.prompt_size);
  for (const int32_t token : to.prompt) {
    if (token < 0 || token >= vocab_size) {
      refuse(fmt::format("token {} of the prompt is outside of the vocabulary of {}", token, vocab_size));
    }
  }
  if (from.max_new_tokens < 1) refuse(fmt::format("max_new_tokens must be at least 1, got {}", from.max_new_tokens));
  to.max_new_tokens = from.max_new_tokens;
  to.sampling = {.temperature = from.temperature, .top_p = from.top_p, .min_p = from.min_p, .top_k = from.top_k};
  if (from.flags & HEXAD_REQUEST_GREEDY) to.sampling.temperature = 0;
  try {
    to.sampling = normalized(to.sampling);
  } catch (const sdk::Error& error) {
    refuse(error.what());
  }
  if (from.num_stop_token_ids < 0 || from.num_stop_strings < 0) refuse("a negative number of stop tokens or strings");
  to.stop_token_ids.assign(from.stop_token_ids, from.stop_token_ids + from.num_stop_token_ids);
  to.stop_strings.assign(from.stop_strings, from.stop_strings + from.num_stop_strings);
  for (const std::string& text : to.stop_strings) {
    if (text.empty()) refuse("a stop string is empty");
  }
  to.ignore_eos = (from.flags & HEXAD_REQUEST_IGNORE_EOS) != 0;
  to.stream = (from.flags & HEXAD_REQUEST_STREAM) != 0;
  sequence->tokens = to.prompt;
  return sequence;
}

}  // namespace hexad::native
