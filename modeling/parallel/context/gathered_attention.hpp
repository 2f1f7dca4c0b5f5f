// Context parallelism by gathering keys and values, over the zigzag layout of layout/context_shards.hpp.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Every rank gathers the keys and values of the whole row for as long as it computes, and attends with its own queries;
// the backward pass gathers them again and reduce-scatters their gradients. What is kept between the two is this
// rank's part alone.
//
// cu_seqlens: [B + 1] of the whole row, every document a multiple of 2 * ranks. q [T / ranks, Hq, D], k and v
// [T / ranks, Hkv, ...] -> [T / ranks, Hq, Dv]. Differentiable; forward and backward are collective over the group.
at::Tensor gathered_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::IntArrayRef cu_seqlens,
                              int64_t window, const Group& group);

}  // namespace hexad::modeling
