// Linear layers cut over a tensor-parallel group (Megatron-LM, arXiv 1909.08053), with or without sequence parallelism
// (arXiv 2205.05198). A pair of them, column then row, needs one reduction forward and one backward.
//
// Tokens: [T, ...] is whole on every rank; with sequence parallelism, what lies between a row-parallel layer and the
// next column-parallel one is [T / ranks, ...], rank r holding the r-th run of tokens.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/op/linear.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

struct TensorParallel {
  Group group;
  bool sequence_parallel = false;
  // Runs in which tokens travel between the ranks, each while another is multiplied; 1: all at once, and the product
  // waits. Only with sequence parallelism, and not in FP8.
  int64_t token_runs = 1;

  bool active() const { return group.size() > 1; }
  bool shards_tokens() const { return active() && sequence_parallel; }
  bool pipelines_tokens() const { return shards_tokens() && token_runs > 1; }
};

// One layer of several column-parallel linears over the same input: rank r has rows [r * out / ranks, ...) of each
// weight [out, in] and gets those features of the product. x: [T, in], or [T / ranks, in] with sequence parallelism ->
// [T, out_i / ranks] each. One to three weights; biases may be undefined.
//
// Backward overlaps its communication: the gradient of x is reduced (with sequence parallelism: the tokens are gathered
// again, then reduce-scattered) while the gradients of the weights are computed. The gathered tokens are not kept.
std::vector<at::Tensor> column_parallel(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                        const std::vector<at::Tensor>& biases, const TensorParallel& tp,
                                        const LinearOptions& options = {});

// Rank r has columns [r * in / ranks, ...) of weight [out, in] and those features of x: [T, in / ranks] -> the whole
// product [T, out], or with sequence parallelism this rank's tokens [T / ranks, out]. The bias is added once.
at::Tensor row_parallel(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const TensorParallel& tp,
                        const LinearOptions& options = {});

// [T / ranks, ...] -> [T, ...]. Backward: the sum over ranks of each rank's tokens, for consumers that use the tokens
// on every rank in different ways.
at::Tensor gather_tokens(const at::Tensor& x, const Group& group);
// [T, ...] -> this rank's tokens of the sum over ranks. Backward: gathers.
at::Tensor reduce_scatter_tokens(const at::Tensor& x, const Group& group);
// Identity, whose backward sums over the ranks; and the sum over the ranks, whose backward is the identity.
at::Tensor copy_to_ranks(const at::Tensor& x, const Group& group);
at::Tensor sum_over_ranks(const at::Tensor& x, const Group& group);

// ids int64 [T] of the whole vocabulary, rows of the embedding from `first_row` on -> [T, H] summed over the ranks, or
// with sequence parallelism this rank's [T / ranks, H]. fp32 at least, as embed().
at::Tensor vocab_parallel_embed(const at::Tensor& rows, int64_t first_row, const at::Tensor& ids,
                                const TensorParallel& tp);

}  // namespace hexad::modeling
