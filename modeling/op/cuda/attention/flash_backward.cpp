#include "modeling/op/cuda/attention/flash_backward.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <c10/cuda/CUDAGuard.h>

#include "modeling/op/function.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::modeling::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FlashBackward : Function<FlashBackward> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PackedLayout& layout, const OwnForward& own_forward) {
    const c10::cuda::CUDAGuard guard(q.device());
    const at::Tensor out = at::empty({q.size(0), q.size(1), v.size(2)}, q.options());
    const at::Tensor log_sums = at::empty({q.size(0), q.size(1)}, q.options().dtype(at::kFloat));
    own_forward(out, log_sums);
    ctx->save_for_backward({q, k, v, out, log_sums, layout.offsets_on_device});
    ctx->saved_data["max_length"] = layout.max_length;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &offsets = saved[5];
    const c10::cuda::CUDAGuard guard(q.device());
    const int64_t length = ctx->saved_data["max_length"].toInt();
    const at::Tensor log_sums = saved[4].t().contiguous();                                     // [Hq, T]
    const at::Tensor unused = at::empty({2}, at::TensorOptions(q.device()).dtype(at::kLong));  // without dropout
    auto [grad_q, grad_k, grad_v] =
        at::_flash_attention_backward(aligned(grads[0]), q, k, v, out, log_sums, offsets, offsets, length, length,
                                      /*dropout_p=*/0.0, /*is_causal=*/true, unused, unused);
    return {grad_q, grad_k, grad_v, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor with_flash_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const PackedLayout& layout, const OwnForward& forward) {
  return FlashBackward::apply(q, k, v, layout, forward);
}

}  // namespace hexad::modeling::cuda
