// SwiGLU and rotary embedding.
#include <ATen/Functions.h>
#include <ATen/cuda/CUDAContextLight.h>

#include "modeling/op/cuda/architecture.hpp"
#include "modeling/op/cuda/binding.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/cuda/rope_kernel.hpp"
#include "modeling/op/cuda/swiglu_kernel.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::modeling::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

SwigluCall swiglu_call(const at::Tensor& gate, const at::Tensor& up) {
  SwigluCall call;
  call.rows = gate.size(0), call.columns = gate.size(1);
  call.gate_stride = gate.stride(0), call.up_stride = up.stride(0);
  call.gate = gate.const_data_ptr(), call.up = up.const_data_ptr();
  call.type = element_of(gate);
  return call;
}

struct Swiglu : Function<Swiglu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_in, const at::Tensor& up_in) {
    const at::Tensor gate = with_row_stride(gate_in), up = with_row_stride(up_in);
    const at::Tensor y = at::empty(gate.sizes(), gate.options());
    swiglu_forward(swiglu_call(gate, up), y.mutable_data_ptr(), stream_of(gate));
    ctx->save_for_backward({gate, up});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor grad = aligned(grads[0]);
    const int64_t rows = grad.size(0), columns = grad.size(1);
    const at::Tensor both = at::empty({rows, 2 * columns}, grad.options());
    swiglu_backward(swiglu_call(saved[0], saved[1]), grad.const_data_ptr(), both.mutable_data_ptr(), stream_of(grad));
    return side_by_side(both, {columns, columns});
  }
};

// The parts rotated (the third copied) into one tensor [T, heads of all parts, D].
std::vector<at::Tensor> rotate(const at::Tensor (&parts)[3], const at::Tensor& cos, const at::Tensor& sin,
                               float direction) {
  RopeCall call;
  int64_t heads = 0;
  at::Tensor readable[3];
  for (int i = 0; i < 3; ++i) {
    readable[i] = with_row_stride(parts[i]);
    call.parts[i] = {readable[i].const_data_ptr(), readable[i].stride(0), static_cast<int>(parts[i].size(1))};
    heads += parts[i].size(1);
  }
  const int64_t tokens = parts[0].size(0), dim = parts[0].size(2);
  const at::Tensor out = at::empty({tokens, heads * dim}, parts[0].options());
  call.cos = cos.const_data_ptr<float>(), call.sin = sin.const_data_ptr<float>();
  call.out = out.mutable_data_ptr(), call.tokens = tokens, call.half = static_cast<int>(dim / 2);
  call.direction = direction, call.type = element_of(parts[0]);
  rotate_heads(call, stream_of(out));
  std::vector<at::Tensor> results =
      side_by_side(out, {parts[0].size(1) * dim, parts[1].size(1) * dim, parts[2].size(1) * dim});
  for (at::Tensor& result : results) result = result.view({tokens, -1, dim});
  return results;
}

struct Rotate : Function<Rotate> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const at::Tensor& cos, const at::Tensor& sin) {
    ctx->save_for_backward({cos, sin});
    ctx->saved_data["shape"] = std::vector<int64_t>{q.size(0), q.size(1), k.size(1), q.size(2)};
    return rotate({q, k, v}, cos, sin, 1.0f);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<int64_t> shape = ctx->saved_data["shape"].toIntVector();
    for (size_t i = 0; i < 3; ++i)
      if (!grads[i].defined()) grads[i] = at::zeros({shape[0], shape[i == 0 ? 1 : 2], shape[3]}, options_of(grads));
    variable_list out = rotate({grads[0], grads[1], grads[2]}, saved[0], saved[1], -1.0f);
    out.resize(5);
    return out;
  }
  static at::TensorOptions options_of(const variable_list& grads) {
    for (const at::Tensor& grad : grads)
      if (grad.defined()) return grad.options();
    return {};
  }
};

}  // namespace

bool has_kernels(const at::Tensor& x) {
  return x.is_cuda() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf);
}

int capability(at::Device device) {
  kernel_architecture(device.index());
  const cudaDeviceProp* const card = at::cuda::getDeviceProperties(device.index());
  return 10 * card->major + card->minor;
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) { return Swiglu::apply(gate, up); }

std::array<at::Tensor, 3> rotate_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                       const Rope& rope) {
  const variable_list out = Rotate::apply(q, k, v, rope.cos, rope.sin);
  return {out[0], out[1], out[2]};
}

}  // namespace hexad::modeling::cuda
