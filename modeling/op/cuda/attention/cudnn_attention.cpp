#include "modeling/op/cuda/attention/cudnn_attention.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "modeling/error.hpp"
#include "modeling/op/cuda/architecture.hpp"
#include "modeling/op/cuda/attention/cudnn_graph.hpp"
#include "modeling/op/cuda/attention/flash_backward.hpp"
#include "modeling/op/cuda/batch_invariant.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::modeling::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool readable_in_place(const at::Tensor& x) {
  const auto stride_fits = [&](int64_t dim) {
    return x.stride(dim) % 8 == 0 && (x.size(dim) == 1 || x.stride(dim) >= x.size(2));  // not an expanded dimension
  };
  return x.stride(2) == 1 && stride_fits(0) && stride_fits(1) && is_aligned(x.const_data_ptr());
}

at::Tensor in_place_or_copied(const at::Tensor& x) { return readable_in_place(x) ? x : aligned(x); }

// The rows as a node of the graph keeps them.
struct KeptRows : torch::CustomClassHolder {
  explicit KeptRows(std::shared_ptr<const RaggedRows> it) : rows(std::move(it)) {}
  std::shared_ptr<const RaggedRows> rows;
};

// own_forward: in place of cuDNN's graph; empty: the graph.
struct CudnnAttention : Function<CudnnAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::shared_ptr<const RaggedRows>& rows, int64_t window,
                            const OwnForward& own_forward) {
    const c10::cuda::CUDAGuard guard(q.device());
    const at::Tensor out = at::empty({q.size(0), q.size(1), v.size(2)}, q.options());
    const at::Tensor log_sums = at::empty({q.size(0), q.size(1)}, q.options().dtype(at::kFloat));
    if (own_forward) {
      own_forward(out, log_sums);
    } else {
      run_cudnn_attention({q, k, v, out, log_sums}, *rows, window);
    }
    ctx->save_for_backward({q, k, v, out, log_sums});
    ctx->saved_data["rows"] = c10::IValue::make_capsule(c10::make_intrusive<KeptRows>(rows));
    ctx->saved_data["window"] = window;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2];
    const auto kept = c10::static_intrusive_pointer_cast<KeptRows>(ctx->saved_data["rows"].toCapsule());
    const int64_t window = ctx->saved_data["window"].toInt();
    const c10::cuda::CUDAGuard guard(q.device());
    // With another token stride than that of q its gradient comes out wrong (cuDNN 9.19). Those of k and v, where heads
    // share them, are summed from one for every head, whose tokens lie as far apart as theirs times the heads that
    // share: parts of a wide tensor would need many times the memory.
    const at::Tensor grad_q = at::empty_strided(q.sizes(), q.strides(), q.options());
    const at::Tensor grad_k = at::empty(k.sizes(), k.options()), grad_v = at::empty(v.sizes(), v.options());
    run_cudnn_attention({q, k, v, saved[3], saved[4], in_place_or_copied(grads[0]), grad_q, grad_k, grad_v},
                        *kept->rows, window);
    return {grad_q, grad_k, grad_v, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool has_cudnn_attention(at::Device device) {
  const int architecture = kernel_architecture(device.index());
  return architecture >= 90 && architecture < 120;
}

bool fits_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto width_fits = [](int64_t width) { return width % 16 == 0 && width <= 256; };
  return q.is_cuda() && (q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16) && q.size(0) > 0 &&
         width_fits(q.size(2)) && width_fits(v.size(2)) && readable_in_place(q) && readable_in_place(k) &&
         readable_in_place(v) && !at::globalContext().deterministicAlgorithms() && has_cudnn_attention(q.device());
}

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::shared_ptr<const RaggedRows>& rows, int64_t window) {
  return CudnnAttention::apply(q, k, v, rows, window, OwnForward());
}

at::Tensor batch_invariant_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const PackedLayout& layout, int64_t window) {
  if (window > 0 && window < layout.max_length)
    fail("batch-invariant attention: got a window of {} and sequences of up to {} tokens, wanted no window below that",
         window, layout.max_length);
  if (q.size(0) == 0) return at::empty({0, q.size(1), v.size(2)}, q.options());
  const bool differentiable = at::GradMode::is_enabled();
  const bool flash = !has_cudnn_attention(q.device()) && q.size(2) == v.size(2) && q.size(2) % 8 == 0 &&
                     !at::globalContext().deterministicAlgorithms();
  if (differentiable && !flash && !fits_attention(q, k, v))
    fail("batch-invariant attention: its backward pass does not take queries [{}] in {}{}", fmt::join(q.sizes(), ", "),
         at::toString(q.scalar_type()), at::globalContext().deterministicAlgorithms() ? " in deterministic mode" : "");
  const auto own = [&](const at::Tensor& out, const at::Tensor& log_sums) {
    invariant_attention_out(q, k, v, layout.offsets_on_device, layout.max_length, out, log_sums);
  };
  if (flash) return with_flash_backward(q, k, v, layout, own);
  return CudnnAttention::apply(q, k, v, layout.rows, window, OwnForward(own));
}

}  // namespace hexad::modeling::cuda
