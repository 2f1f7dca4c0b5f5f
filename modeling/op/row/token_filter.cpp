#include "modeling/op/row/token_filter.hpp"

#include <ATen/Functions.h>

#include <limits>

namespace hexad::modeling {

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
