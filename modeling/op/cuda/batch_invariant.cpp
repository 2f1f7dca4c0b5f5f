#include "modeling/op/cuda/batch_invariant.hpp"

#include <ATen/Functions.h>
#include <ATen/cuda/CUDAContextLight.h>

#include "modeling/error.hpp"
#include "modeling/op/cuda/batch_invariant/attention_kernel.hpp"
#include "modeling/op/cuda/batch_invariant/product_kernel.hpp"
#include "modeling/op/cuda/binding.hpp"

namespace hexad::modeling::cuda {
namespace {

void require_gpu(const char* what, const at::Tensor& x) {
  if (!x.is_cuda() || x.scalar_type() != at::kBFloat16)
    fail("batch-invariant {}: got {} on {}, wanted bfloat16 on a GPU", what, at::toString(x.scalar_type()),
         x.device().str());
}

// Rows that are contiguous and begin on 16 bytes.
bool has_rows(const at::Tensor& x) {
  return x.stride(-1) == 1 && is_aligned(x.const_data_ptr()) && x.stride(0) * x.element_size() % 16 == 0;
}

}  // namespace

void invariant_linear_out(at::Tensor out, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  require_gpu("product", input);
  const int64_t rows = input.size(0), in = weight.size(1), width = weight.size(0);
  if (in % 8 != 0 || width % 8 != 0 || input.size(1) != in || weight.scalar_type() != input.scalar_type())
    fail("batch-invariant product: got x [{}] and a weight [{}] in {}, wanted sizes that are multiples of 8, both bf16",
         fmt::join(input.sizes(), ", "), fmt::join(weight.sizes(), ", "), at::toString(weight.scalar_type()));
  if (rows == 0) return;
  const c10::cuda::CUDAGuard guard(input.device());
  const at::Tensor x = has_rows(input) ? input : aligned(input), w = aligned(weight);
  const at::Tensor b = bias.defined() ? aligned(bias) : bias;
  InvariantProduct call;
  call.x = x.const_data_ptr(), call.weight = w.const_data_ptr(), call.y = out.mutable_data_ptr();
  call.bias = b.defined() ? b.const_data_ptr() : nullptr;
  call.x_stride = x.stride(0), call.y_stride = out.stride(0);
  call.rows = static_cast<int>(rows), call.in = static_cast<int>(in), call.out = static_cast<int>(width);
  call.wide = out.scalar_type() == at::kFloat;
  call.device = x.get_device();
  call.processors = at::cuda::getDeviceProperties(x.device().index())->multiProcessorCount;
  invariant_product(call, stream_of(x));
}

at::Tensor invariant_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
  invariant_linear_out(out, x, weight, bias);
  return out;
}

void invariant_attention_out(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& offsets,
                             int64_t max_length, at::Tensor out, at::Tensor log_sums) {
  require_gpu("attention", q);
  const int64_t dim = q.size(2);
  if ((dim != 64 && dim != 128) || v.size(2) != dim)
    fail("batch-invariant attention: got heads of {} and values of {}, wanted 64 or 128", dim, v.size(2));
  const auto heads_adjoin = [&](const at::Tensor& x) {
    return has_rows(x) && x.stride(1) % 8 == 0 && (x.size(1) == 1 || x.stride(1) >= dim);
  };
  const at::Tensor queries = has_rows(q) && q.stride(1) == dim ? q : aligned(q);
  const at::Tensor keys = heads_adjoin(k) ? k : aligned(k), values = heads_adjoin(v) ? v : aligned(v);
  const c10::cuda::CUDAGuard guard(q.device());
  InvariantAttention call;
  call.q = queries.const_data_ptr(), call.q_stride = queries.stride(0), call.out = out.mutable_data_ptr();
  call.log_sums = log_sums.mutable_data_ptr<float>();
  call.q_indptr = offsets.const_data_ptr<int32_t>();
  call.keys = keys.const_data_ptr(), call.values = values.const_data_ptr();
  call.key_stride = keys.stride(0), call.key_head_stride = keys.stride(1);
  call.value_stride = values.stride(0), call.value_head_stride = values.stride(1);
  call.sequences = static_cast<int>(offsets.size(0) - 1), call.most_rows = static_cast<int>(max_length);
  call.heads = static_cast<int>(q.size(1)), call.kv_heads = static_cast<int>(k.size(1)),
  call.dim = static_cast<int>(dim);
  invariant_attention(call, stream_of(q));
}

}  // namespace hexad::modeling::cuda
