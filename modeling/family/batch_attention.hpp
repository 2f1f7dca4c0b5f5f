// Attention over whole sequences, without a cache: packed rows and right-padded batches.
#pragma once
#include "modeling/family/transformer.hpp"
#include "modeling/op/attention/packed_attention.hpp"

namespace hexad::modeling {

// Causal attention inside each of B packed sequences (layout over T tokens).
class PackedAttention : public Attention {
 public:
  PackedAttention(const ModelConfig& config, PackedLayout layout, AttentionKernel first = AttentionKernel::cudnn);
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override;

 private:
  std::vector<int64_t> windows_;
  PackedLayout layout_;
  AttentionKernel first_;
};

// The same where sequences that begin alike share the rows of their beginning: R rows for the T tokens of the layout.
class SharedRowsAttention : public Attention {
 public:
  // row_of_token int64 [T]; first_token int64 [R]: of those that the row stands for.
  SharedRowsAttention(PackedAttention tokens, at::Tensor row_of_token, at::Tensor first_token);
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override;

 private:
  PackedAttention tokens_;
  at::Tensor row_of_token_, first_token_;
};

// Causal attention inside each row of a right-padded batch whose hidden states are [B * S, H]. Padding comes after the
// tokens, so no token sees it and no mask is needed; what is computed at padding is finite and meaningless.
class PaddedAttention : public Attention {
 public:
  PaddedAttention(const ModelConfig& config, int64_t batch);
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override;

 private:
  std::vector<int64_t> windows_;
  int64_t batch_;
};

}  // namespace hexad::modeling
