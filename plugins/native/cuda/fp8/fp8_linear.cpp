#include "plugins/native/cuda/fp8/fp8_linear.hpp"

#include <ATen/Functions.h>
#include <c10/cuda/CUDAStream.h>

namespace hexad::native::cuda {

void cast_rows(const at::Tensor& x, const at::Tensor& values, const at::Tensor& scales) {
  fp8_rows(bf16(x), Rows{values, scales}.fp8(), int(x.size(0)), int(x.size(1)),
           c10::cuda::getCurrentCUDAStream(x.get_device()));
}

void multiply_fp8(const Rows& x, const at::Tensor& weight, const at::Tensor& scales, const at::Tensor& bias,
                  const at::Tensor& out) {
  if (!x.is_fp8()) {
    return multiply_skinny(bf16(x.values), fp8_weight(weight, scales), bf16(bias), bf16(out), int(x.values.size(0)),
                           int(weight.size(1)), int(weight.size(0)),
                           c10::cuda::getCurrentCUDAStream(weight.get_device()));
  }
  // On sm_90 LibTorch hands this to cuBLAS (outer-vector scaling).
  at::Tensor to = out;
  at::_scaled_mm_out(to, x.values, weight.t(), x.scales.unsqueeze(1), scales.unsqueeze(0), {}, {}, at::kBFloat16,
                     /*use_fast_accum=*/true);
  if (bias.defined()) to.add_(bias);
}

}  // namespace hexad::native::cuda
