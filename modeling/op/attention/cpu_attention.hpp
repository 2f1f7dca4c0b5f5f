// Causal attention over packed sequences on the CPU, with kernels of ours.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// On the CPU, of fp32 or bf16, all of one dtype.
bool fits_cpu_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// q [T, Hq, D], k [T, Hkv, D], v [T, Hkv, Dv] -> [T, Hq, Dv]; Hkv divides Hq; scale 1/sqrt(D); arithmetic in fp32.
// Token i of a sequence sees the tokens i - window + 1 ... i of the same sequence (window 0: 0 ... i). offsets [B + 1]:
// 0 ... T, not decreasing. Memory grows with the tokens and not with their square. A sequence's result and gradients
// depend neither on the other sequences nor on the number of threads.
at::Tensor cpu_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const std::vector<int64_t>& offsets, int64_t window);

}  // namespace hexad::modeling
