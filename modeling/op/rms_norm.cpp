#include "modeling/op/rms_norm.hpp"

#include <ATen/Functions.h>

#include "modeling/op/cpu/dispatch.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/cpu/row_kernels.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows whose part of the weight's gradient is summed by one thread: fixed, so that the sum does not depend on threads.
constexpr int64_t kRowBlock = 64;

struct RmsNormOnCpu : Function<RmsNormOnCpu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& input, const at::Tensor& weight, double eps) {
    const at::Tensor x = input.contiguous(), w = weight.contiguous();
    const int64_t dim = x.size(-1), rows = x.numel() / dim;
    at::Tensor y = at::empty_like(x), inv_rms = at::empty({rows}, x.options().dtype(at::kFloat));
    float* inv = inv_rms.mutable_data_ptr<float>();
    cpu::with_elements(x, [&](auto element) {
      using T = decltype(element);
      const T *px = cpu::data<T>(x), *pw = cpu::data<T>(w);
      T* py = cpu::mutable_data<T>(y);
      cpu::parallel_for(rows, kRowBlock, [&](int64_t begin, int64_t end) {
        cpu::rms_norm_forward(px + begin * dim, pw, py + begin * dim, inv + begin, end - begin, dim, float(eps));
      });
    });
    ctx->save_for_backward({x, w, inv_rms});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1];
    const at::Tensor grad = grads[0].contiguous();
    const int64_t dim = x.size(-1), rows = x.numel() / dim, blocks = (rows + kRowBlock - 1) / kRowBlock;
    at::Tensor grad_x = at::empty_like(x), partial = at::zeros({blocks, dim}, x.options().dtype(at::kFloat));
    const float* inv = saved[2].const_data_ptr<float>();
    float* sums = partial.mutable_data_ptr<float>();
    cpu::with_elements(x, [&](auto element) {
      using T = decltype(element);
      const T *pg = cpu::data<T>(grad), *px = cpu::data<T>(x), *pw = cpu::data<T>(w);
      T* out = cpu::mutable_data<T>(grad_x);
      cpu::parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t block = first; block < last; ++block) {
          const int64_t begin = block * kRowBlock, count = std::min(kRowBlock, rows - begin), at = begin * dim;
          cpu::rms_norm_backward(pg + at, px + at, pw, inv + begin, out + at, sums + block * dim, count, dim);
        }
      });
    });
    return {grad_x, partial.sum(0).to(w.scalar_type()), at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (cuda::fits_norm(x, weight)) return cuda::rms_norm(x, weight, eps);
  if (x.scalar_type() != weight.scalar_type()) {
    return rms_norm(x, weight.to(x.scalar_type()), eps).to(weight.scalar_type());
  }
  if (x.is_cuda()) return at::rms_norm(x, {x.size(-1)}, weight, eps);
  if (cpu::has_kernels(x)) return RmsNormOnCpu::apply(x, weight, eps);
  const at::Tensor wide = x.to(at::kFloat);
  return (wide * (wide.square().mean(-1, true) + eps).rsqrt() * weight).to(x.scalar_type());
}

at::Tensor residual_add(const at::Tensor& hidden, const at::Tensor& delta) {
  const bool fits = cuda::has_kernels(delta) && hidden.scalar_type() == at::kFloat && hidden.numel() % 8 == 0;
  return fits ? cuda::residual_add(hidden, delta) : hidden + delta;
}

std::array<at::Tensor, 2> add_rms_norm(const at::Tensor& hidden, const at::Tensor& delta, const at::Tensor& weight,
                                       double eps) {
  if (cuda::fits_norm(hidden, weight) && (!delta.defined() || delta.scalar_type() == weight.scalar_type()))
    return cuda::add_rms_norm(hidden, delta, weight, eps);
  const at::Tensor sum = delta.defined() ? residual_add(hidden, delta) : hidden;
  return {sum, rms_norm(sum, weight, eps)};
}

}  // namespace hexad::modeling
