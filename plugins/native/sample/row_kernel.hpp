// Passes over one row of fp32 logits that sampling needs. Sums are formed in a fixed order.
#pragma once
#include <cstdint>
#include <vector>

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

// A row as weights exp((logit - largest) * scale), with their sums by span.
struct ExpRow {
  const float* logits;
  int64_t size;
  float largest, scale;  // the row's largest, finite
  std::vector<float> sums;
  double total;

  ExpRow(const float* logits, int64_t size, float largest, float scale);
  // Where the running sum of the weights passes `rest`, in [0, total); the last with any weight, if rounding leaves
  // some of it.
  int32_t at(double rest) const;
};

}  // namespace hexad::native
