// Batches for a backend, one call of each of its passes, and the parts of level 5 that have files of their own.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sdk/verify/engine.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::verify {

// Packed sequences of token ids 1, 2 and 3.
struct TokenBatch {
  std::vector<int64_t> cu_seqlens = {0};
  std::vector<int64_t> ids;
};
TokenBatch make_tokens(const std::vector<int64_t>& lengths, uint64_t seed);
// The sequences of both.
TokenBatch joined(TokenBatch first, const TokenBatch& second);

struct BackendResult {
  hexad_code code = HEXAD_OK;
  std::string text;
  std::vector<float> logprobs;
  double loss = 0;       // train: of the callback
  double grad_norm = 0;  // step
  uint32_t skipped = 0;  // step
  std::string damage;
};

BackendResult forward(const Subject& subject, void* instance, const TokenBatch& batch,
                      int32_t which = HEXAD_WEIGHTS_CURRENT, const CallOptions& options = {}, double temperature = 1);
// One global batch under the negative log-likelihood, sum(-logprob) / tokens, in these micro-batches; one without
// tokens is a dummy. `gradient` takes the place of -1 / tokens where it is not 0.
BackendResult train(const Subject& subject, void* instance, const std::vector<TokenBatch>& batches, double gradient = 0,
                    double temperature = 1);
BackendResult step(const Subject& subject, void* instance, double lr, uint32_t flags = 0);

// The bytes of every weight by name, in one iteration over full weights; reports what an iteration may not do
// (backend_weights.cpp).
std::map<std::string, std::string> export_weights(const Subject& subject, hexad_backend* self, Findings& findings);

// Two instances on two threads, each with one micro-batch of a global batch: the gradient is that of one rank with
// both. Every service of communication fails in turn, in create and in a step: code and text, and the next step is as
// it would have been (backend_group.cpp). A backend that refuses the group with a text is left alone.
void check_group(const Subject& subject, Findings& findings);

}  // namespace hexad::verify
