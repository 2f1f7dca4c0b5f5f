// Which part of every weight a tensor-parallel rank holds, and over whom its gradient must be summed: the rules of
// Megatron-LM's column-, row- and vocab-parallel layers in terms of Hugging Face names. Both backends cut by it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/parallel/placement.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

namespace hexad::modeling {

// A box of a weight: elements [offsets[d], offsets[d] + shape[d]) of its whole shape.
struct WeightSlice {
  std::vector<int64_t> offsets, shape;
  bool operator==(const WeightSlice&) const = default;
};

enum class GradientSum {
  none,          // every rank computes the whole gradient of what it holds
  all,           // each rank has seen a part of it (its heads): sum over the tensor-parallel group
  if_sequence,   // likewise, but only with sequence parallelism (its tokens)
  equal_slices,  // sum over the ranks that hold the same slice: replicated key/value heads
};

// The group over which a weight's gradient is summed; one rank: it is whole. equal_heads: the tensor-parallel ranks
// with the same key/value heads.
Group sum_group(GradientSum sum, const TensorParallel& tp, const Group& equal_heads);

struct TensorPart {
  WeightSlice slice;
  int64_t copy = 0;  // 0: the first rank that holds this slice; norms and checkpoints count this one alone
  GradientSum gradient = GradientSum::none;
};

// The part of tensor-parallel rank `rank` of `ranks`. Query heads divide over the ranks; key/value heads do, or are
// replicated in equal runs; the vocabulary is cut as torch.chunk cuts it. Experts are cut like other MLPs here: over
// expert-tensor-parallel ranks.
TensorPart tensor_part(const ModelConfig& config, const WeightInfo& info, int64_t rank, int64_t ranks);

// Throws Error with the numbers and the nearest sizes that fit: heads, key/value heads, intermediate sizes, vocabulary.
void check_tensor_parallel(const ModelConfig& config, int64_t ranks);

}  // namespace hexad::modeling
