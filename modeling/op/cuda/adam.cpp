#include <algorithm>
#include <cmath>

#include "modeling/op/cuda/adam_kernel.hpp"
#include "modeling/op/cuda/binding.hpp"
#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling::cuda {

void adam_step(const AdamStep& step, const at::Tensor& param, const at::Tensor& grad, const at::Tensor& average,
               const at::Tensor& square, const at::Tensor& rounded) {
  const c10::cuda::CUDAGuard device(param.get_device());
  AdamCall call;
  call.param = param.mutable_data_ptr<float>(), call.grad = grad.const_data_ptr<float>();
  call.average = average.mutable_data_ptr<float>(), call.square = square.mutable_data_ptr<float>();
  if (rounded.defined()) call.rounded = rounded.mutable_data_ptr(), call.rounded_type = element_of(rounded);
  call.count = param.numel();
  call.lr = float(step.lr), call.beta1 = float(step.beta1), call.beta2 = float(step.beta2), call.eps = float(step.eps);
  call.rest1 = float(1 - step.beta1), call.rest2 = float(1 - step.beta2);
  call.decay = float(step.weight_decay), call.grad_scale = float(step.grad_scale);
  call.correction1 = float(1 - std::pow(step.beta1, double(step.number)));
  call.correction2_root = float(std::sqrt(1 - std::pow(step.beta2, double(step.number))));
  const void* arrays[] = {call.param, call.grad, call.average, call.square, call.rounded};
  call.aligned = std::all_of(std::begin(arrays), std::end(arrays), is_aligned);
  call.decoupled = step.decoupled, call.maximize = step.maximize;
  adam_step(call, stream_of(param));
}

}  // namespace hexad::modeling::cuda
