// The decoder on an NVIDIA GPU (sm_90) in bf16: fused kernels, products by cuBLAS, paged attention by FlashInfer's
// kernels, CUDA graphs for passes that only decode, and sampling on the device. The residual stream is fp32, as in
// training. Passes are enqueued while the one before runs: a token that the host does not know yet is read from where
// it was drawn.
#pragma once
#include "plugins/native/model/executor.hpp"

namespace hexad::native {

// With fp8 the products of layers are those of fp8_linear.hpp: passes of more than kMostSkinnyRows rows cast what a
// product reads, row by row; in those of fewer the weights alone are in FP8.

// Dense models of head_dim 64 or 128 in bf16, without biases but those of q, k and v, and without a sliding window
// shorter than the longest sequence; deterministic and batch-invariant ones (invariant_decoder.hpp) with sizes that are
// multiples of 8, and not with fp8 or fp8_cache; with fp8, of sizes in multiples of 64. False in a build without CUDA.
bool runs_on_cuda(const modeling::ModelConfig& config, const ExecutorOptions& options);
std::unique_ptr<Executor> make_cuda_executor(const modeling::ModelConfig& config, const ExecutorOptions& options);

}  // namespace hexad::native
