#include "plugins/native/model/fp8_rows.hpp"

#include <ATen/Functions.h>

#include <limits>

#include "modeling/op/row/adjacent.hpp"
#include "plugins/native/cuda/fp8/fp8_linear.hpp"

namespace hexad::native {

bool is_fp8_weight(const std::string& name, at::IntArrayRef shape) {
  return shape.size() == 2 && name.starts_with("model.layers.");
}

Fp8Rows empty_fp8_rows(int64_t rows, int64_t columns, at::Device device) {
  const at::TensorOptions options = at::TensorOptions(at::kByte).device(device);
  return {at::empty({rows, columns}, options).view(at::kFloat8_e4m3fn), at::empty({rows}, options.dtype(at::kFloat))};
}

void to_fp8_rows(const at::Tensor& x, const Fp8Rows& to) {
  if (x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.size(1) % 8 == 0)
    return cuda::cast_rows(modeling::aligned(x), to.values, to.scales);
  const at::Tensor wide = x.to(at::kFloat), largest = wide.abs().amax(1);
  const at::Tensor factor = (at::full_like(largest, 448.0) / largest).clamp_max(std::numeric_limits<float>::max());
  const at::Tensor used = at::where(largest == 0, at::ones_like(largest), factor);
  at::Tensor(to.scales).copy_(used.reciprocal());
  at::Tensor(to.values).copy_((wide * used.unsqueeze(1)).to(at::kFloat8_e4m3fn));
}

at::Tensor from_fp8_rows(const Fp8Rows& x) { return x.values.to(at::kFloat) * x.scales.unsqueeze(1); }

}  // namespace hexad::native
