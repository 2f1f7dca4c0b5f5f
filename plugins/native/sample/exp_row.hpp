// A row of logits as weights exp((logit - largest) * scale), with their sums by span.
#pragma once
#include <cstdint>
#include <vector>

namespace hexad::native {

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
