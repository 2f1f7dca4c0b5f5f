#include "modeling/backend/micro_batch.hpp"

#include <ATen/Functions.h>
#include <hexad/services.hpp>

#include <numeric>
#include <optional>

#include "modeling/backend/shared_prefixes.hpp"
#include "modeling/backend/tensor_view.hpp"
#include "modeling/family/batch_attention.hpp"
#include "modeling/layout/context_shards.hpp"
#include "modeling/op/host_copy.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"

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

using Held = std::optional<std::vector<int64_t>>;  // tokens, where ranks share them; nothing: all

// What a reward head scores, of the tokens that this rank holds.
void find_ends(MicroBatch& result, const hexad_batch& batch, const Held& held) {
  std::vector<int64_t> place_of(static_cast<size_t>(batch.num_tokens), -1), last, ended;
  if (!held) std::iota(place_of.begin(), place_of.end(), 0);
  for (size_t i = 0; held && i < held->size(); ++i) place_of[static_cast<size_t>((*held)[i])] = static_cast<int64_t>(i);
  for (int64_t b = 0; b < batch.num_sequences; ++b) {
    const int64_t end = batch.cu_seqlens[b + 1];
    if (batch.cu_seqlens[b] == end)
      sdk::fail(HEXAD_INVALID_ARGUMENT, "sequence %lld is empty: a score needs a token", ll(b));
    if (const int64_t place = place_of[static_cast<size_t>(end - 1)]; place >= 0)
      last.push_back(place), ended.push_back(b);
  }
  result.last_tokens = on_device(last, result.ids.device());
  result.ended = on_device(ended, result.ids.device());
  result.sequences = batch.num_sequences;
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

// One packed row: documents filled up to a multiple, and one more that fills up the row.
struct PackedRow {
  std::vector<int64_t> boundaries = {0}, token_rows;
  int64_t size() const { return boundaries.back(); }
};

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

PackedRow fill_up(const hexad_batch& batch, int64_t document_multiple, int64_t row_multiple) {
  PackedRow row;
  for (int64_t b = 0; b < batch.num_sequences; ++b) {
    const int64_t length = batch.cu_seqlens[b + 1] - batch.cu_seqlens[b];
    for (int64_t i = 0; i < length; ++i) row.token_rows.push_back(row.size() + i);
    row.boundaries.push_back(row.size() + round_up(length, document_multiple));
  }
  const int64_t size = round_up(row.size(), std::lcm(document_multiple, row_multiple));
  if (size > row.size()) row.boundaries.push_back(size);
  return row;
}

// Keeps this rank's zigzag part of the rows; returns its tokens.
std::vector<int64_t> take_shard(MicroBatch& batch, at::Tensor& positions, const PackedRow& row, const Group& context) {
  const std::vector<int64_t> held =
      layout::shard_indices(layout::context_shard(row.boundaries, context.size(), context.rank()));
  std::vector<int64_t> token_of(static_cast<size_t>(row.size()), -1), rows, tokens;
  for (size_t t = 0; t < row.token_rows.size(); ++t)
    token_of[static_cast<size_t>(row.token_rows[t])] = static_cast<int64_t>(t);
  for (size_t i = 0; i < held.size(); ++i) {
    const int64_t token = token_of[static_cast<size_t>(held[i])];
    if (token >= 0) rows.push_back(static_cast<int64_t>(i)), tokens.push_back(token);
  }
  const at::Device device = batch.ids.device();
  const at::Tensor index = on_device(held, device);
  batch.ids = batch.ids.index_select(0, index);
  positions = positions.index_select(0, index);
  batch.token_rows = on_device(rows, device);
  batch.token_index = on_device(tokens, device);
  batch.targets = batch.targets.index_select(0, batch.token_index);
  return tokens;
}

void make_padded(MicroBatch& result, at::Tensor& positions, const hexad_batch& batch, const ModelConfig& config,
                 bool batch_invariant) {
  const int64_t rows = batch.num_sequences, length = batch.padded_length;
  const at::Tensor ids = result.ids;
  result.token_rows = on_device(padded_rows(batch), ids.device());
  result.ids = at::zeros({rows * length}, ids.options()).index_copy_(0, result.token_rows, ids);
  positions = at::arange(length, ids.options()).repeat({rows});
  if (batch_invariant) {
    const at::Tensor boundaries = at::arange(rows + 1, at::kLong) * length;
    result.attention = std::make_unique<PackedAttention>(config, packed_layout(boundaries, ids.device()),
                                                         AttentionKernel::batch_invariant);
  } else {
    result.attention = std::make_unique<PaddedAttention>(config, rows);
  }
}

void make_packed(MicroBatch& result, at::Tensor& positions, const hexad_batch& batch, const ModelConfig& config,
                 const BatchLayout& wanted, Held& held) {
  const int64_t ranks = wanted.context.group.size(), document = ranks > 1 ? 2 * ranks : 1;
  const PackedRow row = fill_up(batch, document, ranks * wanted.row_multiple);
  const at::Tensor ids = result.ids;
  if (row.size() != batch.num_tokens) {
    result.token_rows = on_device(row.token_rows, ids.device());
    result.ids = at::zeros({row.size()}, ids.options()).index_copy_(0, result.token_rows, ids);
  }
  PackedLayout packed = packed_layout(at::tensor(row.boundaries, at::kLong), ids.device());
  positions = packed.positions;
  if (ranks == 1) {
    const auto kernel = wanted.batch_invariant ? AttentionKernel::batch_invariant : AttentionKernel::cudnn;
    result.attention = std::make_unique<PackedAttention>(config, std::move(packed), kernel);
  } else {
    held = take_shard(result, positions, row, wanted.context.group);
    result.attention = std::make_unique<ContextAttention>(config, std::move(packed), wanted.context);
  }
}

// A row is one token that is computed, and one prediction: that of its own token, by the row before it.
void make_shared(MicroBatch& result, at::Tensor& positions, const hexad_batch& batch, const ModelConfig& config,
                 const SharedPrefixes& shared) {
  const size_t rows = shared.first_token.size();
  std::vector<int64_t> predicting(rows), prediction_of_token(shared.row_of_token.size());
  const at::Tensor first_token = at::tensor(shared.first_token, at::kLong);
  at::Tensor targets = result.ids.index_select(0, first_token);
  for (size_t row = 0; row < rows; ++row) {
    const bool begins =
        shared.parent[row] < 0;  // nothing predicts it: it stands for the last tokens, which predict nothing
    predicting[row] = begins ? 0 : shared.parent[row];
    if (begins) targets.mutable_data_ptr<int64_t>()[row] = -1;
  }
  for (int64_t b = 0; b < batch.num_sequences; ++b)
    for (int64_t begin = batch.cu_seqlens[b], end = batch.cu_seqlens[b + 1], t = begin; t < end; ++t)
      prediction_of_token[t] = shared.row_of_token[t + 1 < end ? t + 1 : begin];
  PackedLayout packed = packed_layout(checked_offsets(batch), at::kCPU);
  positions = packed.positions.index_select(0, first_token);
  result.ids = result.ids.index_select(0, first_token);
  result.targets = targets;
  result.token_rows = at::tensor(predicting, at::kLong);
  result.prediction_of_token = at::tensor(prediction_of_token, at::kLong);
  result.attention = std::make_unique<SharedRowsAttention>(PackedAttention(config, std::move(packed)),
                                                           at::tensor(shared.row_of_token, at::kLong), first_token);
}

// Whether it did so: a few tokens less are not worth their gathers.
bool try_shared(MicroBatch& result, at::Tensor& positions, const hexad_batch& batch, const ModelConfig& config) {
  const auto tokens = static_cast<size_t>(batch.num_tokens);
  const at::Tensor ids = result.ids.contiguous();
  const SharedPrefixes shared = shared_prefixes({ids.const_data_ptr<int64_t>(), tokens},
                                                {batch.cu_seqlens, static_cast<size_t>(batch.num_sequences) + 1});
  if (8 * shared.first_token.size() > 7 * tokens) return false;
  make_shared(result, positions, batch, config, shared);
  return true;
}

}  // namespace

bool is_empty(const hexad_batch& batch) { return batch.is_dummy || batch.num_tokens == 0; }

const hexad_batch& one_token() {
  static int64_t id = 0, length = 1, offsets[] = {0, 1};
  static DLTensor ids{&id, {kDLCPU, 0}, 1, {kDLInt, 64, 1}, &length, nullptr, 0};
  static const hexad_named_tensor named{"input_ids", &ids, nullptr, HEXAD_AXIS_TOKEN, 0};
  static const hexad_batch batch = [] {
    hexad_batch made{};
    made.struct_size = HEXAD_STRUCT_SIZE(hexad_batch, is_dummy);
    made.num_sequences = made.num_tokens = 1;
    made.cu_seqlens = offsets;
    made.tensors = &named;
    made.num_tensors = 1;
    return made;
  }();
  return batch;
}

MicroBatch make_micro_batch(const hexad_batch& batch, const ModelConfig& config, at::Device device,
                            const BatchLayout& wanted) {
  MicroBatch result;
  result.tokens = batch.num_tokens;
  result.ids = on_device(checked_ids(batch, config), device);
  result.targets = next_token_targets(result.ids, checked_offsets(batch));
  Held held;
  at::Tensor positions;
  if (batch.padded_length > 0 && !wanted.packed) {
    make_padded(result, positions, batch, config, wanted.batch_invariant);
  } else if (!wanted.share_prefixes || !try_shared(result, positions, batch, config)) {
    make_packed(result, positions, batch, config, wanted, held);
  }
  if (config.reward_head) find_ends(result, batch, held);
  result.rope = make_rope(config.rope, config.head_dim, positions);
  return result;
}

RouterRows router_rows(const MicroBatch& batch, const hexad_batch& from, const TensorParallel& tp, bool stands_in) {
  const int64_t all = batch.ids.size(0), parts = tp.shards_tokens() ? tp.group.size() : 1;
  const auto options = batch.ids.options();
  at::Tensor tokens = batch.token_index.defined() ? batch.token_index : at::arange(batch.tokens, options);
  if (batch.token_rows.defined()) tokens = at::full({all}, -1, options).index_copy_(0, batch.token_rows, tokens);
  if (stands_in) tokens = at::full_like(tokens, -1);
  RouterRows rows;
  rows.tokens = tokens.narrow(0, all / parts * (parts > 1 ? tp.group.rank() : 0), all / parts);
  rows.padding = rows.tokens.lt(0);
  const at::Tensor ends =
      at::from_blob(const_cast<int64_t*>(from.cu_seqlens) + 1, {from.num_sequences}, at::kLong).to(options.device());
  rows.sequences = at::searchsorted(ends, rows.tokens.clamp_min(0), /*out_int32=*/false, /*right=*/true);
  rows.num_sequences = from.num_sequences;
  rows.stands_in = stands_in;
  return rows;
}

}  // namespace hexad::modeling
