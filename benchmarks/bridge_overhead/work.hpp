// What is asked and what is answered: the same for the server and for those who check it.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hexad::bridge_overhead {

struct Shape {
  int64_t prompt_tokens = 128, new_tokens = 16;
};

inline uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Token `i` of the answer to request `index`, and its log-prob.
inline int32_t token_at(uint64_t index, int64_t i) {
  return static_cast<int32_t>(mixed(index * 1'000'003 + static_cast<uint64_t>(i)) % 128'000);
}
inline float logprob_at(uint64_t index, int64_t i) {
  return -8 * static_cast<float>(mixed(~index * 1'000'003 + static_cast<uint64_t>(i)) >> 40) / float(1 << 24);
}

// Its first token names the request.
inline std::vector<int32_t> prompt_of(uint64_t index, const Shape& shape) {
  std::vector<int32_t> prompt = {static_cast<int32_t>(index)};
  while (static_cast<int64_t>(prompt.size()) < shape.prompt_tokens)
    prompt.push_back(token_at(index + 1, static_cast<int64_t>(prompt.size())));
  return prompt;
}

// A token as /inference/v1/generate streams it, one event.
inline std::string event_of(uint64_t index, int64_t i, bool last) {
  const int32_t token = token_at(index, i);
  const double logprob = logprob_at(index, i);
  return fmt::format(
      R"(data: {{"request_id":"generate-tokens-{:016x}","choices":[{{"index":0,"logprobs":{{"content":[)"
      R"({{"token":"token_id:{}","logprob":{:.17g},"bytes":null,)"
      R"("top_logprobs":[{{"token":"token_id:{}","logprob":{:.17g}}}]}}]}},"finish_reason":{},"token_ids":[{}]}}],)"
      R"("prompt_logprobs":null,"kv_transfer_params":null}})"
      "\n\n",
      mixed(index), token, logprob, token, logprob, last ? R"("length")" : "null", token);
}

}  // namespace hexad::bridge_overhead
