// Products of sharded tokens in runs, so that one run travels while another is multiplied (Megatron's pipelined
// tp_comm_overlap). Without autograd; the parallel linears of tensor/parallel.hpp are made of them.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

struct GatheredProducts {
  at::Tensor gathered;               // [ranks * t, in]
  std::vector<at::Tensor> products;  // [ranks * t, out_i]
};

// x [t, in] of each rank, the same t; weights [out_i, in]. `runs`: at most so many, in which the t tokens travel.
GatheredProducts gather_and_multiply(const at::Tensor& x, const std::vector<at::Tensor>& weights, const Group& group,
                                     int64_t runs);

// x [ranks * t, in] -> this rank's t tokens of the sum over ranks of x weight^T: [t, out]. Throws Error when the tokens
// do not divide over the ranks.
at::Tensor multiply_and_scatter(const at::Tensor& x, const at::Tensor& weight, const Group& group, int64_t runs);

}  // namespace hexad::modeling
