// Which part of the model a rank of a replica holds: heads and the width of MLPs are shared out by Megatron-LM's
// column- and row-parallel rules, the rows of the head as torch.chunk cuts them; the embedding is whole on every rank.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "modeling/parallel/placement.hpp"

namespace hexad::native {

struct Shard {
  int64_t rank = 0, ranks = 1;
};

// The rank's own heads, key/value heads and width; all else is the model's. Throws modeling::Error where the ranks do
// not divide them: key/value heads may also be fewer than ranks, and are then held by several.
modeling::ModelConfig local_config(const modeling::ModelConfig& config, const Shard& shard);

// The rows of the vocabulary whose logits the rank computes.
modeling::Range head_rows(const modeling::ModelConfig& config, const Shard& shard);

struct WeightPart {
  std::string name;
  std::vector<int64_t> global_shape, offsets, shape;
  bool counts = true;  // false: another rank holds the same slice too, and counts it

  bool whole() const { return shape == global_shape; }
};

// In the order of modeling::weight_table.
std::vector<WeightPart> weight_parts(const modeling::ModelConfig& config, const Shard& shard = {});

}  // namespace hexad::native
