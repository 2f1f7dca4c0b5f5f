// Matrices in FP8 (e4m3) with a scale for each row: value = round(x * q), q = 448 / max |x| of the row, scale =
// 1 / q, so that x is about value * scale. A row of zeros has q = 1; one with something infinite or not a number makes
// products that are not numbers. Weights have a row for each output channel, activations one for each token: rows do
// not depend on each other.
//
// Ranks that share a model cast what they hold: of a matrix whose columns are cut (o_proj, down_proj) each has scales
// for its own part of a row, and so has what multiplies it. Each rank's product is made whole by its own scales before
// the ranks' are summed, which is exact; the casts differ from those of one rank, whose scales span whole rows, and lie
// no farther from what was cast.
//
// With precision fp8 these are the matrices of a model's layers; embedding, head, norms and biases keep bf16.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace hexad::native {

struct Fp8Rows {
  at::Tensor values, scales;  // e4m3 [R, C], fp32 [R]
};

// Whether the weight of a Hugging Face name, of a dense model, is kept so; and the name of its scales.
bool is_fp8_weight(const std::string& name, at::IntArrayRef shape);
inline std::string scales_name(const std::string& name) { return name + "_scale"; }

Fp8Rows empty_fp8_rows(int64_t rows, int64_t columns, at::Device device);
// x [R, C] into `to`, on LibTorch's current stream. From bf16 on a GPU, with C a multiple of 8, a kernel, else plain
// ATen; the same bits.
void to_fp8_rows(const at::Tensor& x, const Fp8Rows& to);
// fp32 [R, C].
at::Tensor from_fp8_rows(const Fp8Rows& x);

}  // namespace hexad::native
