// One call of a cached cuDNN graph. The frontend's headers stay in the .cpp.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "modeling/op/row/ragged_rows.hpp"

namespace hexad::modeling::cuda {

// Tensors of packed attention, [T, heads, width] with unit stride in a head; the second line is for the backward pass.
struct AttentionTensors {
  at::Tensor q, k, v, out, log_sums;  // log_sums: fp32 [T, Hq], the log-sum-exp of each query's scores
  at::Tensor grad_out = {}, grad_q = {}, grad_k = {}, grad_v = {};  // undefined: run the forward pass
};

// Writes out and log_sums, or the gradients; grad_q has the strides of q. Enqueues on the current stream of q's device,
// which is the current device. Graphs are kept for the life of the process, one for each combination of bounds, heads,
// widths, strides, dtype, window, device and direction. Throws Error with cuDNN's message where it has no plan.
void run_cudnn_attention(const AttentionTensors& tensors, const RaggedRows& rows, int64_t window);

// Graphs made so far.
int64_t cudnn_graph_count();

}  // namespace hexad::modeling::cuda
