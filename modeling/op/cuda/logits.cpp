// Softmax of logits, and products that add to fp32 sums.
#include <ATen/Functions.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <cublas_v2.h>

#include "modeling/error.hpp"
#include "modeling/op/cuda/binding.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/cuda/softmax_kernel.hpp"

namespace hexad::modeling::cuda {

RowStatistics softmax_statistics(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& kept) {
  const auto row = [&] { return at::empty({logits.size(0)}, logits.options()); };
  const RowStatistics out{row(), row(), row()};
  SoftmaxStatisticsCall call;
  call.logits = logits.const_data_ptr<float>();
  call.targets = targets.const_data_ptr<int64_t>();
  call.log_sum = out.log_sum.mutable_data_ptr<float>(), call.entropy = out.entropy.mutable_data_ptr<float>();
  call.target_logits = out.target_logits.mutable_data_ptr<float>();
  call.kept = kept.defined() ? kept.mutable_data_ptr() : nullptr;
  call.rows = logits.size(0), call.columns = logits.size(1);
  softmax_statistics(call, stream_of(logits));
  return out;
}

void softmax_gradient(const at::Tensor& logits, const RowStatistics& statistics, const at::Tensor& grad_logprob,
                      const at::Tensor& grad_entropy, const at::Tensor& targets, double factor, at::Tensor grads) {
  SoftmaxGradientCall call;
  call.logits = logits.const_data_ptr(), call.logit_type = element_of(logits);
  call.log_sum = statistics.log_sum.const_data_ptr<float>(), call.entropy = statistics.entropy.const_data_ptr<float>();
  call.grad_logprob = grad_logprob.const_data_ptr<float>(), call.grad_entropy = grad_entropy.const_data_ptr<float>();
  call.targets = targets.const_data_ptr<int64_t>();
  call.grads = grads.mutable_data_ptr();
  call.rows = logits.size(0), call.columns = logits.size(1);
  call.factor = static_cast<float>(factor), call.type = element_of(grads);
  softmax_gradient(call, stream_of(logits));
}

void accumulate_product(const at::Tensor& sum, const at::Tensor& grad, const at::Tensor& input) {
  const at::Tensor g = with_row_stride(grad), x = aligned(input);
  const auto type = [](const at::Tensor& t) {
    return element_of(t) == Element::f32 ? CUDA_R_32F : element_of(t) == Element::bf16 ? CUDA_R_16BF : CUDA_R_16F;
  };
  const int rows = static_cast<int>(sum.size(-2)), columns = static_cast<int>(sum.size(-1));
  const int parts = sum.dim() == 3 ? static_cast<int>(sum.size(0)) : 1;
  const float one = 1;
  // cuBLAS is column-major: sum^T [K, N] = x^T [K, T] times g [T, N]; part p takes columns p * rows ... of g.
  const cublasStatus_t status = cublasGemmStridedBatchedEx(
      at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_T, columns, rows, static_cast<int>(x.size(0)), &one,
      x.const_data_ptr(), type(x), columns, 0, g.const_data_ptr(), type(g), static_cast<int>(g.stride(0)), rows, &one,
      sum.mutable_data_ptr(), CUDA_R_32F, static_cast<int>(sum.stride(-2)), sum.dim() == 3 ? sum.stride(0) : 0, parts,
      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  if (status != CUBLAS_STATUS_SUCCESS)
    fail("weight gradient: product of [{}, {}] over {} tokens failed: {}", rows, columns, x.size(0),
         cublasGetStatusString(status));
}

}  // namespace hexad::modeling::cuda
