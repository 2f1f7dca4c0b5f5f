#include "modeling/family/batch_attention.hpp"

namespace hexad::modeling {

PackedAttention::PackedAttention(const ModelConfig& config, PackedLayout layout, AttentionKernel first)
    : windows_(config.sliding_window), layout_(std::move(layout)), first_(first) {}

at::Tensor PackedAttention::attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return packed_attention(q, k, v, layout_, windows_.at(layer), first_);
}

PaddedAttention::PaddedAttention(const ModelConfig& config, int64_t batch)
    : windows_(config.sliding_window), batch_(batch) {}

at::Tensor PaddedAttention::attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto rows = [this](const at::Tensor& x) { return x.view({batch_, x.size(0) / batch_, x.size(1), x.size(2)}); };
  return padded_attention(rows(q), rows(k), rows(v), windows_.at(layer)).flatten(0, 1);
}

}  // namespace hexad::modeling
