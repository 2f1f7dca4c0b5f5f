// A batch of packed sequences, in host or in device memory.
#pragma once
#include <cstdint>

#include "sequence.hpp"
#include "totals.hpp"

namespace clipped_pg {

enum Input : size_t {
  kLogprobs,
  kUnfiltered,
  kPrevious,
  kGeneration,
  kReference,
  kAdvantages,
  kTokenMask,
  kSampleMask,
  kRewards,
  kPositiveTokens,
  kHeld,
  kHeldUnfiltered,
  kInputCount
};

// fp32 arrays of T tokens or B sequences, null where the options do not need them; gradients are written.
struct Batch {
  const float* inputs[kInputCount] = {};
  float *grad = nullptr, *grad_unfiltered = nullptr;
  const int64_t* cu_seqlens = nullptr;     // [B + 1]
  int64_t sequences = 0;                   // B
  double per_token = 1, per_sequence = 1;  // 1 / global counts
};

// Row `row`, but for its sums.
CLIPPED_PG_BOTH Sequence sequence_of(const Batch& batch, int64_t row) {
  const int64_t first = batch.cu_seqlens[row] + 1, end = batch.cu_seqlens[row + 1];
  const size_t count = end > first ? static_cast<size_t>(end - first) : 0;
  const auto part = [&](auto* array) { return std::span(array && count ? array + first : nullptr, array ? count : 0); };
  Sequence sequence;
  sequence.logprobs = part(batch.inputs[kLogprobs]);
  sequence.unfiltered = part(batch.inputs[kUnfiltered]);
  sequence.held = part(batch.inputs[kHeld]);
  sequence.held_unfiltered = part(batch.inputs[kHeldUnfiltered]);
  sequence.previous = part(batch.inputs[kPrevious]);
  sequence.generation = part(batch.inputs[kGeneration]);
  sequence.reference = part(batch.inputs[kReference]);
  sequence.advantages = part(batch.inputs[kAdvantages]);
  sequence.mask = part(batch.inputs[kTokenMask]);
  sequence.grad = part(batch.grad);
  sequence.grad_unfiltered = part(batch.grad_unfiltered);
  sequence.sample_mask = batch.inputs[kSampleMask][row];
  sequence.reward = batch.inputs[kRewards] ? batch.inputs[kRewards][row] : 0;
  if (batch.inputs[kPositiveTokens]) sequence.per_positive_token = 1 / denominator(batch.inputs[kPositiveTokens][row]);
  sequence.per_token = batch.per_token;
  sequence.per_sequence = batch.per_sequence;
  return sequence;
}

// The loss and its metrics (conclude), gradients written: on the host.
void compute_on_host(const Options& options, const Batch& batch, double* loss, double* metrics);

}  // namespace clipped_pg
