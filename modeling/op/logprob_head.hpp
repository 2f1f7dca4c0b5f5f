// Language-model head and log-prob as one differentiable op, chunked over tokens: fp32 logits of a large micro-batch
// never exist. A chunk's logits are computed again in the backward pass, or kept up to `kept_bytes`.
#pragma once
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/tensor/vocab_shard.hpp"

namespace hexad::modeling {

struct LogprobOptions {
  double temperature = 1.0;     // > 0: logits are divided by it first
  int64_t top_k = 0;            // <= 0 off; keeps the k largest logits and every tie of the k-th
  double top_p = 1.0;           // 1 off; keeps p where the ascending cumulative probability > 1 - top_p, at least one
  bool entropy = false;         // also the entropy of the distribution that the log-probs are of
  bool unfiltered_too = false;  // also the log-probs without top_k and top_p (temperature stays)
  VocabShard vocab = {};        // which rows of the vocabulary `weight` has; by default all
  int64_t chunk_tokens = 0;     // rows of logits held at a time; 0: 64 MiB of fp32 on a CPU, 2 GiB on a GPU
  // On a GPU in bf16: a row's log-prob does not depend on the rows beside it, bit for bit (cuda/batch_invariant.hpp).
  bool batch_invariant = false;
  // Of logits between forward and backward pass, by default 8 GiB in fp16 on a GPU; on a CPU 256 MiB in fp32, where
  // those of all rows fit, nothing is filtered, and chunk_tokens does not bound them.
  std::optional<int64_t> kept_bytes = {};
};

struct LogprobResult {
  at::Tensor logprobs;              // fp32 [N]; -inf where the filter excludes the target
  at::Tensor entropy;               // fp32 [N], or undefined
  at::Tensor unfiltered_logprobs;   // fp32 [N], or undefined
  at::Tensor sequence_scores = {};  // fp32 [B], of a model with a reward head, which has nothing else
};

// hidden [N, H] (after the final norm), weight [V, H], targets int64 [N]. A row whose target is negative is not
// computed: its outputs and gradients are 0. Differentiable in hidden and weight through every output; the gradient of
// the weight is accumulated in fp32 over the chunks, in its grad() where that is fp32 (op/linear.hpp). A -inf log-prob
// passes no gradient.
//
// With a VocabShard the weight is this rank's rows; every rank gets the whole result. Collective over its group, and
// the gradient of hidden is then this rank's summand: pass hidden through copy_to_ranks or gather_tokens first.
LogprobResult head_logprobs(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                            const LogprobOptions& options = {});

}  // namespace hexad::modeling
