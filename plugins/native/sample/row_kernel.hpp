// Passes over one row of fp32 logits that sampling needs. Sums are formed in a fixed order.
#pragma once
#include <cstdint>

namespace hexad::native {

inline constexpr int64_t kSpan = 256;  // logits summed together

// The largest; nan if any logit is nan.
float largest(const float* logits, int64_t vocab);

// sums[i] = sum of exp((logits - shift) * scale) over the i-th span of kSpan logits. shift is at least the largest.
void exp_sums(const float* logits, int64_t vocab, float shift, float scale, float* sums);

// weights[i] = exp((logits[i] - shift) * scale): the terms of exp_sums, for one span.
void exp_terms(const float* logits, int64_t count, float shift, float scale, float* weights);

// Copies the indices of logits >= threshold, in order; returns how many. `indices` has room for `vocab`.
int64_t indices_from(const float* logits, int64_t vocab, float threshold, int32_t* indices);

}  // namespace hexad::native
