// A tensor of the optimizer in a type of its own, as Transformer Engine's FusedAdam keeps it (set_scaled_state):
// bfloat16 is rounded; float16 and float8_e4m3fn hold value / scale, with one scale a tensor, max |value| / limit, and
// limits 65504 / 2 and 448.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

class StateTensor {
 public:
  StateTensor() = default;                                   // undefined
  StateTensor(const at::Tensor& like, at::ScalarType type);  // zeros, of its sizes and device

  bool defined() const { return held_.defined(); }
  // In fp32: the tensor itself where it is kept so, which may be written in place; else a copy.
  at::Tensor load() const;
  // Takes fp32 values, those of load() among them.
  void store(const at::Tensor& value);
  int64_t bytes() const;
  void move_to(at::Device device);

 private:
  double limit() const;  // 0: no scale

  at::Tensor held_, scale_;
};

// fp32 values as bf16 parameters and the 16 bits that those lack (store_param_remainders): the value's bits are
// 2^16 parameter + remainder, as integers, with the remainder in [-2^15, 2^15). Exact; rounds half away from zero.
// parameter bf16 [n], remainder int16 [n], value fp32 [n].
at::Tensor join_remainder(const at::Tensor& parameter, const at::Tensor& remainder);
void split_remainder(const at::Tensor& value, at::Tensor parameter, at::Tensor remainder);

}  // namespace hexad::modeling
