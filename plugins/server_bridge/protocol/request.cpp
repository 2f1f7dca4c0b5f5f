#include "plugins/server_bridge/protocol/request.hpp"

#include <fmt/format.h>

#include <hexad/services.hpp>

namespace hexad::bridge {

Request copy_request(const hexad_request& from, int64_t vocabulary) {
  const auto refuse = [&](const std::string& reason) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "request %llu: %s", static_cast<unsigned long long>(from.id), reason.c_str());
  };
  Request to;
  to.id = from.id, to.group = from.group, to.seed = from.seed;
  if (from.prompt_size < 1) refuse("the prompt is empty");
  to.prompt.assign(from.prompt, from.prompt + from.prompt_size);
  for (const int32_t token : to.prompt) {
    if (token < 0) refuse(fmt::format("token {} of the prompt is negative", token));
    if (vocabulary > 0 && token >= vocabulary) {
      refuse(fmt::format("token {} of the prompt is none of the model's {} (vocab_size of its config.json)", token,
                         vocabulary));
    }
  }
  if (from.max_new_tokens < 1) refuse(fmt::format("max_new_tokens must be at least 1, got {}", from.max_new_tokens));
  to.max_new_tokens = from.max_new_tokens;
  to.temperature = from.flags & HEXAD_REQUEST_GREEDY ? 0 : from.temperature;
  to.top_p = from.top_p, to.min_p = from.min_p, to.top_k = from.top_k;
  if (!(to.temperature >= 0)) refuse(fmt::format("temperature must be at least 0, got {}", to.temperature));
  if (!(to.top_p > 0 && to.top_p <= 1)) refuse(fmt::format("top_p must be above 0 and at most 1, got {}", to.top_p));
  if (!(to.min_p >= 0 && to.min_p <= 1)) refuse(fmt::format("min_p must be between 0 and 1, got {}", to.min_p));
  if (to.top_k < 0) to.top_k = 0;
  if (from.num_stop_token_ids < 0 || from.num_stop_strings < 0) refuse("a negative number of stop tokens or strings");
  to.stop_token_ids.assign(from.stop_token_ids, from.stop_token_ids + from.num_stop_token_ids);
  to.stop_strings.assign(from.stop_strings, from.stop_strings + from.num_stop_strings);
  for (const std::string& text : to.stop_strings) {
    if (text.empty()) refuse("a stop string is empty");
  }
  to.ignore_eos = (from.flags & HEXAD_REQUEST_IGNORE_EOS) != 0;
  to.stream = (from.flags & HEXAD_REQUEST_STREAM) != 0;
  return to;
}

uint64_t seed_at(uint64_t seed, int64_t position) {
  uint64_t x = seed + 0x9E3779B97F4A7C15ull * (static_cast<uint64_t>(position) + 1);  // splitmix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace hexad::bridge
