#include "modeling/moe/router_linear.hpp"

#include <ATen/Functions.h>

#include "modeling/op/function.hpp"
#include "modeling/op/linear.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RouterLinear : Function<RouterLinear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight) {
    ctx->save_for_backward({x, weight});
    // CUDA alone has 16-bit products of another type.
    return x.is_cuda() ? at::mm(x, weight.t(), at::kFloat) : at::mm(x.to(at::kFloat), weight.t().to(at::kFloat));
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], grad = grads[0].contiguous();
    variable_list result(2);
    if (ctx->needs_input_grad(0)) result[0] = at::mm(grad, weight.to(at::kFloat)).to(x.scalar_type());
    if (!weight.requires_grad()) return result;
    if (const at::Tensor sum = grad_sum_of(weight); sum.defined()) {
      accumulate_product(sum, grad, x.to(at::kFloat));
    } else {
      result[1] = at::mm(grad.t(), x.to(at::kFloat)).to(weight.scalar_type());
    }
    return result;
  }
};

}  // namespace

at::Tensor router_linear(const at::Tensor& x, const at::Tensor& weight, at::ScalarType dtype, int64_t row_tile) {
  const bool narrow = x.element_size() == 2 && weight.scalar_type() == x.scalar_type();
  if (row_tile == 0 && dtype == at::kFloat && narrow) return RouterLinear::apply(x, weight);
  return apply_linear(x.to(dtype), weight.to(dtype), {}, row_tile);
}

}  // namespace hexad::modeling
