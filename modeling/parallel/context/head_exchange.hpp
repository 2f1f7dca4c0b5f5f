// Between parts of the tokens with all heads and all tokens with parts of the heads: the all-to-all of
// DeepSpeed-Ulysses (arXiv 2309.14509).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Can `ranks` share these heads out? Query heads divide; key/value heads divide too, or each goes to as many ranks.
bool heads_divide(int64_t heads, int64_t kv_heads, int64_t ranks);

class HeadExchange {
 public:
  // rows: where token i of the joined parts, in the order in which they are wanted, stands in the concatenation of the
  // ranks' parts (layout::merged_positions).
  HeadExchange(const Group& group, const std::vector<int64_t>& rows, at::Device device);

  // Attention of whole rows with some of the heads: q [T, Hq / ranks, D] -> [T, Hq / ranks, Dv].
  using Attend = std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;
  // q [T / ranks, Hq, D], k [T / ranks, Hkv, D], v [T / ranks, Hkv, Dv] -> [T / ranks, Hq, Dv]. Differentiable; forward
  // and backward are collective over the group. Throws Error when the heads do not divide.
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Attend& inner) const;

 private:
  Group group_;
  at::Tensor order_, inverse_;  // int64 [T]
};

}  // namespace hexad::modeling
