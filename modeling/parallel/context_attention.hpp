// Causal attention when every rank holds a zigzag part of every document (layout/context_shards.hpp).
#pragma once
#include <cstdint>
#include <vector>

#include "modeling/family/transformer.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Ring attention (arXiv 2310.01889) over the zigzag layout: keys and values go round the group, each rank joins the
// blocks that its queries see, and no rank ever holds more than two ranks' keys. The next block travels while this one
// is computed; in the backward pass the gradients of keys and values travel with them, and arrive at home.
class RingAttention : public Attention {
 public:
  // cu_seqlens: [B + 1] of the whole row, every document a multiple of 2 * ranks.
  RingAttention(const ModelConfig& config, std::vector<int64_t> cu_seqlens, const Group& group);
  // q [T / ranks, Hq, D], k and v [T / ranks, Hkv, ...] -> [T / ranks, Hq, Dv].
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override;

 private:
  std::vector<int64_t> windows_, cu_seqlens_;
  Group group_;
};

}  // namespace hexad::modeling
