#include "plugins/native/parallel/shard.hpp"

#include <algorithm>

#include "modeling/family/weight_table.hpp"
#include "modeling/parallel/tensor/plan.hpp"

namespace hexad::native {

modeling::ModelConfig local_config(const modeling::ModelConfig& config, const Shard& shard) {
  modeling::ModelConfig local = config;
  if (shard.ranks == 1) return local;
  modeling::check_tensor_parallel(config, shard.ranks);
  local.num_heads /= shard.ranks;
  local.num_kv_heads = std::max<int64_t>(1, config.num_kv_heads / shard.ranks);
  local.intermediate_size /= shard.ranks;
  return local;
}

modeling::Range head_rows(const modeling::ModelConfig& config, const Shard& shard) {
  return modeling::chunk_range(config.vocab_size, shard.ranks, shard.rank);
}

std::vector<WeightPart> weight_parts(const modeling::ModelConfig& config, const Shard& shard) {
  std::vector<WeightPart> parts;
  for (const modeling::WeightInfo& info : modeling::weight_table(config)) {
    const bool cut = info.hf_name != modeling::kEmbeddingName;
    const modeling::TensorPart part = modeling::tensor_part(config, info, cut ? shard.rank : 0, cut ? shard.ranks : 1);
    parts.push_back({info.hf_name, info.shape, part.slice.offsets, part.slice.shape, part.copy == 0});
  }
  return parts;
}

}  // namespace hexad::native
