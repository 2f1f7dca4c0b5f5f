#include "modeling/family/batch_attention.hpp"

#include "modeling/op/row/gather.hpp"

namespace hexad::modeling {

PackedAttention::PackedAttention(const ModelConfig& config, PackedLayout layout, AttentionKernel first)
    : windows_(config.sliding_window), layout_(std::move(layout)), first_(first) {}

at::Tensor PackedAttention::attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return packed_attention(q, k, v, layout_, windows_.at(layer), first_);
}

SharedRowsAttention::SharedRowsAttention(PackedAttention tokens, at::Tensor row_of_token, at::Tensor first_token)
    : tokens_(std::move(tokens)), row_of_token_(std::move(row_of_token)), first_token_(std::move(first_token)) {}

// Tokens of one row compute the same; which of them is taken does not matter.
at::Tensor SharedRowsAttention::attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto of_tokens = [this](const at::Tensor& rows) { return gather_rows(rows, row_of_token_); };
  return gather_rows(tokens_.attend(layer, of_tokens(q), of_tokens(k), of_tokens(v)), first_token_);
}

PaddedAttention::PaddedAttention(const ModelConfig& config, int64_t batch)
    : windows_(config.sliding_window), batch_(batch) {}

at::Tensor PaddedAttention::attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto rows = [this](const at::Tensor& x) { return x.view({batch_, x.size(0) / batch_, x.size(1), x.size(2)}); };
  return padded_attention(rows(q), rows(k), rows(v), windows_.at(layer)).flatten(0, 1);
}

}  // namespace hexad::modeling
