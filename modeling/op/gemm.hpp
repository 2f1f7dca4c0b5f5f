// Matrix products in the faster of LibTorch's two libraries: for fp32 on CPUs ATen calls MKL alone, which reaches 150
// GFLOP/s on two cores of Zen 4 where oneDNN reaches 200 (docs/performance.md).
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// a [M, K] b [K, N], of one dtype and device. Not differentiable: for the passes of operators that are.
at::Tensor gemm(const at::Tensor& a, const at::Tensor& b);

// The same in `out` [M, N], whose values before do not count.
void gemm_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

// sum [M, N] += a b.
void add_gemm(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

// x [M, K], weight [N, K], bias [N] or undefined -> x weight^T + bias.
at::Tensor gemm_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace hexad::modeling
