// Ring attention (arXiv 2310.01889) over the zigzag layout of layout/context_shards.hpp.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Keys and values go round the group, each rank joins the blocks that its queries see, and no rank ever holds more than
// two ranks' keys. The next block travels while this one is computed; in the backward pass the gradients of keys and
// values travel with them, and arrive at home.
//
// cu_seqlens: [B + 1] of the whole row, every document a multiple of 2 * ranks. q [T / ranks, Hq, D], k and v
// [T / ranks, Hkv, ...] -> [T / ranks, Hq, Dv]. Differentiable; forward and backward are collective over the group.
at::Tensor ring_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::IntArrayRef cu_seqlens,
                          int64_t window, const Group& group);

}  // namespace hexad::modeling
