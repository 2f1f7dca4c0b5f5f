#include <ATen/Functions.h>

#include "modeling/op/cuda/binding.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/cuda/rms_norm_kernel.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [T, width], or [T, heads, width] with any distance between tokens.
NormRows rows_of(const at::Tensor& x) {
  NormRows shape;
  shape.dim = static_cast<int>(x.size(-1));
  shape.rows = x.numel() / x.size(-1);
  shape.per_group = x.dim() == 3 ? static_cast<int>(x.size(1)) : 1;
  shape.group_stride = x.stride(0);
  return shape;
}

at::Tensor readable(const at::Tensor& x) { return x.size(0) == 0 || x.dim() > 3 ? aligned(x) : with_row_stride(x); }

void run_forward(RmsNormForward call, const at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& y,
                 const at::Tensor& inv_rms) {
  call.shape = rows_of(x);
  call.eps = static_cast<float>(eps);
  call.x = x.const_data_ptr(), call.weight = weight.const_data_ptr();
  call.y = y.mutable_data_ptr(), call.inv_rms = inv_rms.mutable_data_ptr<float>();
  call.x_type = element_of(x), call.y_type = element_of(y);
  rms_norm_forward(call, stream_of(x));
}

struct Gradients {
  at::Tensor x, delta, weight;
};

Gradients run_backward(const at::Tensor& grad_y, const at::Tensor& grad_sum, const at::Tensor& x,
                       const at::Tensor& weight, const at::Tensor& inv_rms, bool with_delta) {
  RmsNormBackward call;
  call.shape = rows_of(x);
  const at::Tensor grad = aligned(grad_y), sum = grad_sum.defined() ? aligned(grad_sum) : grad_sum;
  Gradients out;
  out.x = at::empty(x.sizes(), x.options());
  if (with_delta) out.delta = at::empty(x.sizes(), weight.options());
  const at::Tensor partial = at::empty({partial_rows(call.shape), call.shape.dim}, inv_rms.options());
  call.grad_y = grad.const_data_ptr(), call.grad_sum = sum.defined() ? sum.const_data_ptr() : nullptr;
  call.x = x.const_data_ptr(), call.weight = weight.const_data_ptr(), call.inv_rms = inv_rms.const_data_ptr<float>();
  call.grad_x = out.x.mutable_data_ptr(), call.grad_delta = with_delta ? out.delta.mutable_data_ptr() : nullptr;
  call.partial = partial.mutable_data_ptr<float>();
  call.x_type = element_of(x), call.y_type = element_of(weight);
  rms_norm_backward(call, stream_of(x));
  out.weight = partial.sum(0).to(weight.scalar_type());
  return out;
}

struct RmsNorm : Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& input, const at::Tensor& weight, double eps) {
    const at::Tensor x = readable(input), w = aligned(weight);
    const at::Tensor y = at::empty(x.sizes(), w.options());
    const at::Tensor inv_rms = at::empty({x.numel() / x.size(-1)}, x.options().dtype(at::kFloat));
    run_forward({}, x, w, eps, y, inv_rms);
    ctx->save_for_backward({x, w, inv_rms});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Gradients out = run_backward(grads[0], {}, saved[0], saved[1], saved[2], false);
    return {out.x, out.weight, at::Tensor()};
  }
};

struct AddRmsNorm : Function<AddRmsNorm> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& hidden, const std::optional<at::Tensor>& delta,
                               const at::Tensor& weight, double eps) {
    const at::Tensor x = aligned(hidden), w = aligned(weight), d = delta ? aligned(*delta) : at::Tensor();
    const at::Tensor sum = delta ? at::empty_like(x) : hidden, y = at::empty(x.sizes(), w.options());
    const at::Tensor inv_rms = at::empty({x.size(0)}, x.options().dtype(at::kFloat));
    RmsNormForward call;
    if (delta) call.delta = d.const_data_ptr(), call.sum = sum.mutable_data_ptr();
    run_forward(call, x, w, eps, y, inv_rms);
    ctx->save_for_backward({delta ? sum : x, w, inv_rms});
    ctx->saved_data["delta"] = delta.has_value();
    return {sum, y};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor grad_y = grads[1].defined() ? grads[1] : at::zeros(saved[0].sizes(), saved[1].options());
    const Gradients out =
        run_backward(grad_y, grads[0], saved[0], saved[1], saved[2], ctx->saved_data["delta"].toBool());
    return {out.x, out.delta, out.weight, at::Tensor()};
  }
};

struct ResidualAdd : Function<ResidualAdd> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden, const at::Tensor& delta) {
    const at::Tensor x = aligned(hidden), d = aligned(delta), sum = at::empty_like(x);
    residual_add(x.const_data_ptr<float>(), d.const_data_ptr(), sum.mutable_data_ptr<float>(), x.numel(), element_of(d),
                 stream_of(x));
    ctx->saved_data["type"] = static_cast<int64_t>(d.scalar_type());
    return sum;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {grads[0], grads[0].to(static_cast<at::ScalarType>(ctx->saved_data["type"].toInt()))};
  }
};

}  // namespace

bool fits_norm(const at::Tensor& x, const at::Tensor& weight) {
  const int64_t width = x.size(-1);
  return has_kernels(x) && has_kernels(weight) && width % 8 == 0 && width <= kMaxNormDim &&
         (x.scalar_type() == weight.scalar_type() || x.scalar_type() == at::kFloat);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return RmsNorm::apply(x, weight, eps);
}

std::array<at::Tensor, 2> add_rms_norm(const at::Tensor& hidden, const at::Tensor& delta, const at::Tensor& weight,
                                       double eps) {
  const variable_list out =
      AddRmsNorm::apply(hidden, delta.defined() ? std::optional(delta) : std::nullopt, weight, eps);
  return {out[0], out[1]};
}

at::Tensor residual_add(const at::Tensor& hidden, const at::Tensor& delta) { return ResidualAdd::apply(hidden, delta); }

at::Tensor embed_rows(const at::Tensor& table, const at::Tensor& ids) {
  EmbedCall call;
  const at::Tensor rows = aligned(table);
  const at::Tensor out = at::empty({ids.size(0), rows.size(1)}, rows.options().dtype(at::kFloat));
  call.table = rows.const_data_ptr(), call.ids = ids.const_data_ptr<int64_t>(),
  call.out = out.mutable_data_ptr<float>();
  call.tokens = ids.size(0), call.rows = rows.size(0), call.dim = static_cast<int>(rows.size(1));
  call.type = element_of(rows);
  embed_rows(call, stream_of(rows));
  return out;
}

}  // namespace hexad::modeling::cuda
