#include "modeling/backend/micro_batch.hpp"

#include <ATen/Functions.h>
#include <hexad/services.hpp>

#include "modeling/backend/tensor_view.hpp"
#include "modeling/family/batch_attention.hpp"
#include "modeling/op/logprob_head.hpp"

namespace hexad::modeling {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

at::Tensor checked_ids(const hexad_batch& batch, const ModelConfig& config) {
  if (batch.num_tensors < 1) sdk::fail(HEXAD_INVALID_ARGUMENT, "the batch has no input_ids");
  const at::Tensor ids = from_dl(batch.tensors[0].tensor, "input_ids");
  if (ids.scalar_type() != at::kLong || ids.dim() != 1 || ids.size(0) != batch.num_tokens)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "input_ids must be int64 [%lld]", ll(batch.num_tokens));
  if (!ids.is_cpu() || ids.numel() == 0) return ids;  // a look at device memory would stall the stream
  const auto [low, high] = at::aminmax(ids);
  const int64_t smallest = low.item<int64_t>(), largest = high.item<int64_t>();
  if (smallest < 0 || largest >= config.vocab_size)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "input_ids has the token %lld, but the model's vocabulary is [0, %lld): the "
              "tokenizer is another model's",
              ll(smallest < 0 ? smallest : largest), ll(config.vocab_size));
  return ids;
}

at::Tensor checked_offsets(const hexad_batch& batch) {
  if (batch.cu_seqlens[0] != 0 || batch.cu_seqlens[batch.num_sequences] != batch.num_tokens)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "cu_seqlens goes from %lld to %lld, wanted 0 to %lld", ll(batch.cu_seqlens[0]),
              ll(batch.cu_seqlens[batch.num_sequences]), ll(batch.num_tokens));
  for (int64_t b = 0; b < batch.num_sequences; ++b) {
    const int64_t length = batch.cu_seqlens[b + 1] - batch.cu_seqlens[b];
    if (length < 0) sdk::fail(HEXAD_INVALID_ARGUMENT, "cu_seqlens decreases at sequence %lld", ll(b));
    if (batch.padded_length > 0 && length > batch.padded_length)
      sdk::fail(HEXAD_INVALID_ARGUMENT, "sequence %lld has %lld tokens, more than padded_length %lld", ll(b),
                ll(length), ll(batch.padded_length));
  }
  return at::from_blob(const_cast<int64_t*>(batch.cu_seqlens), {batch.num_sequences + 1}, at::kLong);
}

// Row of each packed token in the padded layout.
at::Tensor padded_rows(const hexad_batch& batch) {
  at::Tensor rows = at::empty({batch.num_tokens}, at::kLong);
  int64_t* out = rows.mutable_data_ptr<int64_t>();
  for (int64_t b = 0; b < batch.num_sequences; ++b)
    for (int64_t i = batch.cu_seqlens[b]; i < batch.cu_seqlens[b + 1]; ++i)
      out[i] = b * batch.padded_length + i - batch.cu_seqlens[b];
  return rows;
}

}  // namespace

MicroBatch make_micro_batch(const hexad_batch& batch, const ModelConfig& config, at::Device device,
                            const BatchLayout& wanted) {
  const at::Tensor ids = checked_ids(batch, config).to(device);
  at::Tensor offsets = checked_offsets(batch);
  MicroBatch result;
  result.tokens = batch.num_tokens;
  result.targets = next_token_targets(ids, offsets);
  at::Tensor positions;
  if (batch.padded_length > 0 && !wanted.packed) {
    const int64_t rows = batch.num_sequences, length = batch.padded_length;
    result.token_rows = padded_rows(batch).to(device);
    result.ids = at::zeros({rows * length}, ids.options()).index_copy_(0, result.token_rows, ids);
    positions = at::arange(length, ids.options()).repeat({rows});
    result.attention = std::make_unique<PaddedAttention>(config, rows);
  } else {
    result.ids = ids;
    const int64_t multiple = wanted.row_multiple, missing = (multiple - batch.num_tokens % multiple) % multiple;
    if (missing > 0) {
      result.token_rows = at::arange(batch.num_tokens, ids.options());
      result.ids = at::constant_pad_nd(ids, {0, missing});
      offsets = at::cat({offsets, at::full({1}, batch.num_tokens + missing, at::kLong)});
    }
    PackedLayout layout = packed_layout(offsets, device);
    positions = layout.positions;
    result.attention = std::make_unique<PackedAttention>(config, std::move(layout));
  }
  result.rope = make_rope(config.rope, config.head_dim, positions);
  return result;
}

}  // namespace hexad::modeling
