// Weights in FP8 (e4m3) with the scales that vLLM's checkpoints have beside them: a weight is element * scale. Rounding
// is to nearest even. On the host, on several threads; bits of whole blocks are those of NeMo-RL's cast.
#pragma once
#include <dlpack.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace hexad::vllm::fp8 {

// A contiguous matrix in host memory: bf16, fp16 or fp32.
struct Matrix {
  const std::byte* data = nullptr;
  DLDataType type{};
  int64_t rows = 0, columns = 0;
};

constexpr int64_t kBlock = 128;  // blocks are 128 x 128
constexpr int64_t kStrip = 32;   // of a row, in MX
constexpr int64_t blocks_of(int64_t size) { return (size + kBlock - 1) / kBlock; }

// A scale a block: `values` [rows, columns], `scales` [blocks_of(rows), blocks_of(columns)]. 448 / scale is what the
// largest magnitude was multiplied with; `powers`: rounded so that the scale is a power of two. All-zero blocks have
// the scale 1; one with something that is not finite becomes NaN.
void cast_blocks(const Matrix& x, bool powers, std::span<uint8_t> values, std::span<float> scales);

// OCP MX: a scale a strip of 32 elements of a row, a power of two as its exponent plus 127 (e8m0). `columns` is a
// multiple of 32; `values` [rows, columns], `exponents` [rows, columns / 32]. A strip of zeros has the exponent 1, as
// TensorRT-LLM's kernels take no 0.
void cast_strips(const Matrix& x, std::span<uint8_t> values, std::span<uint8_t> exponents);

}  // namespace hexad::vllm::fp8
