// A request on its way: what was asked, what has been sampled, and where its keys and values are.
#pragma once
#include <hexad/abi.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "plugins/native/sample/sampler.hpp"

namespace hexad::native {

struct Request {
  uint64_t id = 0;
  uint64_t group = 0;
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 1;
  uint64_t seed = 0;
  SamplingParams sampling;
  std::vector<int32_t> stop_token_ids;
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;
  bool stream = false;
};

struct Sequence {
  Request request;
  uint64_t arrival = 0;         // order of submission: who goes first, and who is preempted last
  std::vector<int32_t> tokens;  // the prompt, then what was sampled; the last may be on its way: below 0 (executor.hpp)
  std::vector<float> logprobs;  // of the sampled ones that are known
  int64_t limit = std::numeric_limits<int64_t>::max();  // most tokens that it may have
  std::vector<hexad_version_span> spans;
  int64_t reported = 0;  // sampled tokens that a streaming caller has seen

  // Of the model's routers, [tokens, layers, experts] of the tokens that were run, as they were run first: a preempted
  // sequence is run again, with log-probs of before. Empty unless asked for.
  std::vector<int16_t> routes;

  int64_t computed = 0;         // leading tokens whose keys and values are in the cache
  std::vector<int32_t> blocks;  // of the cache, in order of positions
  bool shareable = true;        // false: part of its prompt was computed before shared prompts were flushed
  int64_t preemptions = 0;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int64_t prompt_size() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t sampled() const { return size() - prompt_size(); }
  int64_t known() const { return prompt_size() + static_cast<int64_t>(logprobs.size()); }  // tokens
  // Tokens to run before the next one can be sampled; 0 when there is no next one.
  int64_t pending() const { return size() < limit ? size() - computed : 0; }
};

// A request of the host, checked: a copy of everything that `request` points to; the sequence's tokens are its prompt.
// Throws sdk::Error (invalid argument), with the request's id, for what no model of a vocabulary of this size can run:
// an empty prompt, a token outside of the vocabulary, max_new_tokens below 1, sampling parameters out of their ranges,
// an empty stop string.
std::unique_ptr<Sequence> make_sequence(const hexad_request& request, int64_t vocab_size);

}  // namespace hexad::native
