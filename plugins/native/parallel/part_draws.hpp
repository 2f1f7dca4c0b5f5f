// Draws of a pass whose logits lie on several ranks by columns (part_sampler.hpp). Each draw travels as a few numbers.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "plugins/native/parallel/replica.hpp"
#include "plugins/native/sample/sampler.hpp"

namespace hexad::native {

struct WantedDraw {
  const SamplingParams* params;
  double u;
  int64_t row;  // of the logits
};

// logits: fp32 on the CPU, [rows, columns] of this rank, contiguous; `first` is the first of its columns in a whole
// row. The same draws on every rank. None is filtered.
std::vector<Draw> draw_over_ranks(const at::Tensor& logits, int64_t first, std::span<const WantedDraw> wanted,
                                  const Replica& replica);

}  // namespace hexad::native
