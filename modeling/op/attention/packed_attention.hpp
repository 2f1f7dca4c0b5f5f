// Causal attention over packed sequences and over right-padded batches, with grouped KV heads and an optional window.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/op/row/ragged_rows.hpp"

namespace hexad::modeling {

// Where each of B sequences lies in T packed tokens: made once a micro-batch and used by every layer.
struct PackedLayout {
  std::vector<int64_t> offsets;  // [B + 1] on the host: 0 ... T, not decreasing
  int64_t max_length = 0;
  at::Tensor offsets_on_device;            // int32 [B + 1], for the varlen kernels of CUDA; undefined on the CPU
  at::Tensor positions;                    // int64 [T] on the device: 0, 1, ... in each sequence
  std::shared_ptr<const RaggedRows> rows;  // for cuDNN; null on the CPU
};

// cu_seqlens: int64 or int32 [B + 1], any device (read on the host: keep it on the CPU to avoid a synchronisation).
// Copies to the device are enqueued on the current stream and not waited for. Throws Error when it does not start at 0
// or decreases.
PackedLayout packed_layout(const at::Tensor& cu_seqlens, at::Device device);

// Which kernel runs packed attention: the first of the table that fits, or a later one on request (tests, benchmarks).
//
// | kernel | build, device          | dtype      | widths D, Dv           | besides                                   |
// |--------|------------------------|------------|------------------------|-------------------------------------------|
// | cudnn  | CUDA, Hopper and B200  | bf16, fp16 | multiples of 16 to 256 | 16-byte rows and heads; not in ATen's     |
// |        |                        |            |                        | deterministic mode (cuda/cudnn_attention) |
// | flash  | LibTorch's CUDA        | bf16, fp16 | multiples of 8 to 256  | ATen's varlen FlashAttention-2            |
// | cpu    | any, CPU               | fp32, bf16 | any                    | whatever is asked for (cpu_attention)     |
// | plain  | any                    | any        | any                    | padded rows of similar length             |
//
// batch_invariant is never chosen for speed: alone on request, and where it does not fit an error. A token's result
// does not depend on the pack, and is that of the generator's paged cache (cuda/batch_invariant.hpp); bf16, heads of 64
// or 128, no window below the longest sequence. Its backward pass is cuDNN's or flash.
enum class AttentionKernel { cudnn, flash, plain, batch_invariant };

// q [T, Hq, D], k [T, Hkv, D], v [T, Hkv, Dv] -> [T, Hq, Dv]; Hkv divides Hq; scale 1/sqrt(D). Token i of a sequence
// sees the tokens i - window + 1 ... i of the same sequence (window 0: 0 ... i).
at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedLayout& layout,
                            int64_t window = 0, AttentionKernel first = AttentionKernel::cudnn);

// q [B, S, Hq, D], k [B, S, Hkv, D], v [B, S, Hkv, Dv] -> [B, S, Hq, Dv]: the same inside each row.
at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t window = 0);

}  // namespace hexad::modeling
