// Attention over the paged cache in ATen operators: the reference for the CPU's kernel, and what other devices run.
#pragma once
#include <vector>

#include "modeling/family/transformer.hpp"
#include "plugins/native/model/attention_groups.hpp"
#include "plugins/native/model/kv_cache.hpp"

namespace hexad::native {

class PagedAttention : public modeling::Attention {
 public:
  // For the rows of `step`. `config` and `cache` are borrowed. Deterministic: what a row gets does not depend on the
  // other rows of the step.
  PagedAttention(const modeling::ModelConfig& config, const Step& step, KvCache& cache, bool deterministic);
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override;

 private:
  struct Group {
    int64_t pieces, queries, blocks;
    at::Tensor rows, positions, last, table;  // of AttentionGroup, on the device
  };
  at::Tensor attend_group(const Group& group, int64_t layer, const at::Tensor& q) const;

  const modeling::ModelConfig& config_;
  KvCache& cache_;
  at::Tensor heads_;             // int64 [Hkv]
  at::Tensor blocks_, offsets_;  // int64 [T, 1]: where each row's key and value go
  std::vector<Group> groups_;
  at::Tensor order_;  // int64 [T]: a row's place in the groups' results, one after the other
};

}  // namespace hexad::native
