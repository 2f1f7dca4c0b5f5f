// Causal attention when every rank holds a zigzag part of every document (layout/context_shards.hpp).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "modeling/family/transformer.hpp"
#include "modeling/op/attention/packed_attention.hpp"
#include "modeling/parallel/context/head_exchange.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Megatron-Core's cp_comm_type: who gets to see whose keys.
enum class ContextExchange {
  p2p,         // keys and values go round a ring
  all_gather,  // keys and values are gathered
  a2a,         // tokens are exchanged for heads
  a2a_p2p      // tokens for heads in the inner groups, a ring across them
};

// "p2p", "all_gather", "a2a", "a2a+p2p"; nothing for any other text.
std::optional<ContextExchange> parse_context_exchange(const std::string& text);

// The ranks that share the tokens of a row.
struct ContextParallel {
  Group group;                              // all of them: rank r has part r
  Group inner, outer;                       // of a2a_p2p: neighbours in `group`, and ranks at the same place among them
  std::vector<ContextExchange> exchange{};  // one for each layer, or one for all; none: p2p

  bool active() const { return group.size() > 1; }
};

class ContextAttention : public Attention {
 public:
  // row: of the whole row, every document a multiple of 2 * ranks.
  ContextAttention(const ModelConfig& config, PackedLayout row, const ContextParallel& ranks);
  // q [T / ranks, Hq, D], k and v [T / ranks, Hkv, ...] -> [T / ranks, Hq, Dv].
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override;

 private:
  ContextExchange exchange(int64_t layer) const;

  std::vector<int64_t> windows_;
  PackedLayout row_;
  ContextParallel ranks_;
  std::optional<HeadExchange> all_heads_, inner_heads_;  // made where a layer wants them
};

// Attention by one exchange. cu_seqlens: [B + 1] of the whole row, every document a multiple of 2 * ranks. q
// [T / ranks, Hq, D], k and v [T / ranks, Hkv, ...] -> [T / ranks, Hq, Dv]. Differentiable; forward and backward are
// collective over the group.
//
// gathered: every rank gathers the keys and values of the whole row for as long as it computes, and attends with its
// own queries; the backward pass gathers them again and reduce-scatters their gradients. What is kept between the two
// is this rank's part alone.
at::Tensor gathered_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::IntArrayRef cu_seqlens,
                              int64_t window, const Group& group);
// ring (arXiv 2310.01889): keys and values go round the group, each rank joins the blocks that its queries see, and no
// rank ever holds more than two ranks' keys. The next block travels while this one is computed; in the backward pass
// the gradients of keys and values travel with them, and arrive at home.
at::Tensor ring_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::IntArrayRef cu_seqlens,
                          int64_t window, const Group& group);

}  // namespace hexad::modeling
