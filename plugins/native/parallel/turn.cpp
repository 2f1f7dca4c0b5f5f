#include "plugins/native/parallel/turn.hpp"

#include <bit>
#include <functional>

namespace hexad::native {

uint64_t digest_of(const Request& request) {
  const SamplingParams& sampling = request.sampling;
  uint64_t digest = 0;
  for (const uint64_t value : {request.id, request.group, request.seed, static_cast<uint64_t>(request.max_new_tokens),
                               static_cast<uint64_t>(sampling.top_k), static_cast<uint64_t>(request.ignore_eos)})
    digest = mixed(digest, value);
  for (const double value : {sampling.temperature, sampling.top_p, sampling.min_p})
    digest = mixed(digest, std::bit_cast<uint64_t>(value));
  for (const auto* tokens : {&request.prompt, &request.stop_token_ids}) {
    digest = mixed(digest, tokens->size());
    for (const int32_t token : *tokens) digest = mixed(digest, static_cast<uint64_t>(token));
  }
  for (const std::string& text : request.stop_strings) digest = mixed(digest, std::hash<std::string>()(text));
  return digest;
}

}  // namespace hexad::native
