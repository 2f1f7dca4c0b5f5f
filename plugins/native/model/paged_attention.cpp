#include "plugins/native/model/paged_attention.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "modeling/op/host_copy.hpp"

namespace hexad::native {
namespace {

// Of the gathered fp32 keys and values of one group.
constexpr int64_t kGroupBytes = int64_t{512} << 20;

// Of a row's keys or values, as the cache holds them.
at::Tensor stored_as(const at::Tensor& x, at::ScalarType dtype) {
  return dtype == at::kFloat8_e4m3fn ? x.clamp(-448, 448).to(dtype) : x.to(dtype);
}

}  // namespace

PagedAttention::PagedAttention(const modeling::ModelConfig& config, const Step& step, KvCache& cache,
                               bool deterministic)
    : config_(config), cache_(cache) {
  const at::Device device = cache.keys(0).device();
  const int64_t size = cache.block_size();
  std::vector<int64_t> blocks, offsets;
  for (const Chunk& chunk : step.chunks) {
    for (int64_t position = chunk.start; position < chunk.start + chunk.count; ++position) {
      blocks.push_back(chunk.sequence->blocks[position / size]);
      offsets.push_back(position % size);
    }
  }
  heads_ = at::arange(config.num_kv_heads, at::TensorOptions(at::kLong).device(device));
  blocks_ = modeling::on_device(blocks, device).unsqueeze(1);
  offsets_ = modeling::on_device(offsets, device).unsqueeze(1);

  const int64_t max_keys = std::max<int64_t>(1, kGroupBytes / (8 * config.num_kv_heads * config.head_dim));
  std::vector<int64_t> order(blocks.size());
  int64_t place = 0;
  for (const AttentionGroup& group :
       deterministic ? group_by_position(step, size) : group_by_length(step, size, max_keys)) {
    // Fillers behind the rows of a piece repeat its last one: the first place of a row is its own.
    for (int64_t i = std::ssize(group.rows); i-- > group.first;) order[group.rows[i]] = place + i;
    place += static_cast<int64_t>(group.rows.size());
    groups_.push_back({group.pieces, group.queries, group.blocks, modeling::on_device(group.rows, device),
                       modeling::on_device(group.positions, device), modeling::on_device(group.last, device),
                       modeling::on_device(group.table, device)});
  }
  order_ = modeling::on_device(order, device);
}

at::Tensor PagedAttention::attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const at::Tensor &keys = cache_.keys(layer), &values = cache_.values(layer);
  keys.permute({0, 1, 3, 2}).index_put_({blocks_, heads_, offsets_}, stored_as(k, keys.scalar_type()));
  at::Tensor(values).index_put_({blocks_, heads_, offsets_}, stored_as(v, values.scalar_type()));
  std::vector<at::Tensor> outputs;
  for (const Group& group : groups_) outputs.push_back(attend_group(group, layer, q));
  return at::cat(outputs, 0).index_select(0, order_).to(q.scalar_type());
}

// [pieces * queries, Hq, D] in fp32.
at::Tensor PagedAttention::attend_group(const Group& group, int64_t layer, const at::Tensor& q) const {
  const int64_t pieces = group.pieces, queries = group.queries, length = group.blocks * cache_.block_size();
  const int64_t kv_heads = config_.num_kv_heads, dim = config_.head_dim, share = config_.num_heads / kv_heads;
  const int64_t window = config_.sliding_window[layer], batch = pieces * kv_heads;
  const at::Tensor query = q.index_select(0, group.rows)
                               .to(at::kFloat)
                               .view({pieces, queries, kv_heads, share, dim})
                               .permute({0, 2, 1, 3, 4})
                               .reshape({batch, queries * share, dim});
  const at::Tensor keys = cache_.keys(layer)
                              .index_select(0, group.table)
                              .to(at::kFloat)
                              .view({pieces, group.blocks, kv_heads, dim, -1})
                              .permute({0, 2, 3, 1, 4})
                              .reshape({batch, dim, length});
  const at::Tensor stored = cache_.values(layer)
                                .index_select(0, group.table)
                                .to(at::kFloat)
                                .view({pieces, group.blocks, kv_heads, -1, dim})
                                .permute({0, 2, 1, 3, 4})
                                .reshape({pieces, kv_heads, length, dim});
  // The cache holds anything, also nan, where nothing was written.
  const at::Tensor to = at::arange(length, group.rows.options());
  const at::Tensor unwritten = (to > group.last.unsqueeze(1)).view({pieces, 1, length, 1});
  const at::Tensor values = stored.masked_fill(unwritten, 0).view({batch, length, dim});

  const at::Tensor from = group.positions.view({pieces, 1, queries, 1, 1});
  at::Tensor hidden = to > from;
  if (window > 0) hidden = hidden.logical_or(to <= from - window);
  const at::Tensor scores = (at::bmm(query, keys) / std::sqrt(double(dim)))
                                .view({pieces, kv_heads, queries, share, length})
                                .masked_fill(hidden, -std::numeric_limits<double>::infinity());
  return at::bmm(scores.softmax(-1).view({batch, queries * share, length}), values)
      .view({pieces, kv_heads, queries, share, dim})
      .permute({0, 2, 1, 3, 4})
      .reshape({pieces * queries, config_.num_heads, dim});
}

}  // namespace hexad::native
