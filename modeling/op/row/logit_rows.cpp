#include "modeling/op/row/logit_rows.hpp"

#include <ATen/Functions.h>

#include <limits>

#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/cpu/row_kernels.hpp"

namespace hexad::modeling {
namespace {

SoftmaxStatistics statistics_on_cpu(const at::Tensor& logits) {
  const int64_t rows = logits.size(0), vocab = logits.size(1);
  SoftmaxStatistics result{at::empty({rows}, logits.options()), at::empty({rows}, logits.options())};
  const float* z = logits.const_data_ptr<float>();
  float* log_sum = result.log_sum.mutable_data_ptr<float>();
  float* entropy = result.entropy.mutable_data_ptr<float>();
  cpu::parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
    cpu::softmax_statistics(z + begin * vocab, log_sum + begin, entropy + begin, end - begin, vocab);
  });
  return result;
}

void gradient_on_cpu(at::Tensor& logits, const SoftmaxStatistics& statistics, const at::Tensor& grad_logprob,
                     const at::Tensor& grad_entropy, const at::Tensor& targets) {
  const int64_t rows = logits.size(0), vocab = logits.size(1);
  float* z = logits.mutable_data_ptr<float>();
  const float* log_sum = statistics.log_sum.const_data_ptr<float>();
  const float* entropy = statistics.entropy.const_data_ptr<float>();
  const float* g = grad_logprob.const_data_ptr<float>();
  const float* ge = grad_entropy.const_data_ptr<float>();
  const int64_t* target = targets.const_data_ptr<int64_t>();
  cpu::parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
    cpu::softmax_gradient(z + begin * vocab, log_sum + begin, entropy + begin, g + begin, ge + begin, target + begin,
                          end - begin, vocab);
  });
}

constexpr double kFloor = -100.0;  // exp is 0 in fp32, and 0 * log p must be 0

}  // namespace

SoftmaxStatistics softmax_statistics(const at::Tensor& logits) {
  if (logits.is_cpu()) return statistics_on_cpu(logits.contiguous());
  const at::Tensor logprobs = at::log_softmax(logits, 1);
  const at::Tensor entropy = (logprobs.exp() * logprobs.clamp_min(kFloor)).sum(1).neg();
  return {at::logsumexp(logits, 1), entropy};
}

void softmax_gradient_(at::Tensor& logits, const SoftmaxStatistics& statistics, const at::Tensor& grad_logprob,
                       const at::Tensor& grad_entropy, const at::Tensor& targets) {
  if (logits.is_cpu() && logits.is_contiguous()) {
    gradient_on_cpu(logits, statistics, grad_logprob.contiguous(), grad_entropy.contiguous(), targets.contiguous());
    return;
  }
  logits.sub_(statistics.log_sum.unsqueeze(1)).clamp_min_(kFloor);
  const at::Tensor weight = (logits + statistics.entropy.unsqueeze(1)) * grad_entropy.unsqueeze(1);
  logits.exp_().neg_().mul_(weight.add_(grad_logprob.unsqueeze(1)));
  const at::Tensor at_target = grad_logprob.masked_fill(targets.lt(0), 0.0);
  logits.scatter_add_(1, targets.clamp_min(0).unsqueeze(1), at_target.unsqueeze(1));
}

at::Tensor top_k_top_p_mask(const at::Tensor& logits, int64_t top_k, double top_p) {
  const int64_t vocab = logits.size(1);
  at::Tensor keep = at::ones_like(logits, logits.options().dtype(at::kBool));
  if (top_k > 0 && top_k < vocab) {
    keep = logits >= std::get<0>(logits.topk(top_k, 1)).slice(1, top_k - 1, top_k);
  }
  if (top_p < 1.0) {
    const at::Tensor kept = logits.masked_fill(keep.logical_not(), -std::numeric_limits<float>::infinity());
    const auto [ascending, order] = kept.sort(/*stable=*/true, 1, /*descending=*/false);
    at::Tensor in_nucleus = ascending.softmax(1).cumsum(1) > 1.0 - top_p;
    in_nucleus.slice(1, vocab - 1).fill_(true);
    keep = keep.logical_and(at::zeros_like(keep).scatter_(1, order, in_nucleus));
  }
  return keep;
}

}  // namespace hexad::modeling
