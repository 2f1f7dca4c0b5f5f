#include "modeling/parallel/tensor/state_tensor.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {

StateTensor::StateTensor(const at::Tensor& like, at::ScalarType type)
    : held_(at::zeros(like.sizes(), at::TensorOptions(like.device()).dtype(type))) {
  if (limit() > 0) scale_ = at::zeros({}, at::TensorOptions(like.device()).dtype(at::kFloat));
}

double StateTensor::limit() const {
  const at::ScalarType type = held_.scalar_type();
  return type == at::kHalf ? 65504.0 / 2 : type == at::kFloat8_e4m3fn ? 448.0 : 0.0;
}

at::Tensor StateTensor::load() const {
  const at::Tensor value = held_.to(at::kFloat);
  return scale_.defined() ? value.mul_(scale_) : value;
}

void StateTensor::store(const at::Tensor& value) {
  if (value.is_alias_of(held_)) return;
  if (!scale_.defined() || value.numel() == 0) {
    held_.copy_(value);
    return;
  }
  scale_ = value.abs().max().div_(limit());
  held_.copy_(value.mul(at::where(scale_ > 0, scale_.reciprocal(), at::zeros_like(scale_))));
}

int64_t StateTensor::bytes() const { return held_.defined() ? static_cast<int64_t>(held_.nbytes()) : 0; }

void StateTensor::move_to(at::Device device) {
  if (held_.defined()) held_ = held_.to(device);
  if (scale_.defined()) scale_ = scale_.to(device);
}

at::Tensor join_remainder(const at::Tensor& parameter, const at::Tensor& remainder) {
  return parameter.view(at::kShort).to(at::kInt).mul_(1 << 16).add_(remainder).view(at::kFloat);
}

void split_remainder(const at::Tensor& value, at::Tensor parameter, at::Tensor remainder) {
  const at::Tensor bits = value.view(at::kInt);
  const at::Tensor high = at::bitwise_right_shift(bits + (1 << 15), 16);
  parameter.view(at::kShort).copy_(high);
  remainder.copy_(bits - high * (1 << 16));
}

}  // namespace hexad::modeling
