#include "plugins/native/model/paged_attention.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "modeling/op/host_copy.hpp"

namespace hexad::native {
namespace {

// Of the gathered fp32 keys and values of one group, and of its scores.
constexpr int64_t kGroupBytes = int64_t{512} << 20;

// Of a row's keys or values, as the cache holds them.
at::Tensor stored_as(const at::Tensor& x, at::ScalarType dtype) {
  return dtype == at::kFloat8_e4m3fn ? x.clamp(-448, 448).to(dtype) : x.to(dtype);
}

// Positions [start, start + count) of a sequence, which are the rows from `row` on.
struct Piece {
  const Sequence* sequence;
  int64_t row, start, count;
  int64_t last() const { return start + count - 1; }
};

void add(AttentionGroup& group, const Piece& piece) {
  ++group.pieces;
  for (int64_t i = 0; i < group.queries; ++i) {
    const int64_t used = std::clamp<int64_t>(i - group.first, 0, piece.count - 1);
    group.rows.push_back(piece.row + used);
    group.positions.push_back(piece.start + used);
  }
  group.last.push_back(piece.last());
  const std::vector<int32_t>& blocks = piece.sequence->blocks;
  for (int64_t i = 0; i < group.blocks; ++i) {
    group.table.push_back(blocks[std::min<size_t>(i, blocks.size() - 1)]);
  }
}

AttentionGroup shaped(int64_t queries, int64_t keys, int64_t block_size) {
  AttentionGroup group;
  group.queries = queries;
  group.blocks = (keys + block_size - 1) / block_size;
  return group;
}

std::vector<Piece> pieces_of(const Step& step) {
  std::vector<Piece> pieces;
  int64_t row = 0;
  for (const Chunk& chunk : step.chunks) {
    pieces.push_back({chunk.sequence, row, chunk.start, chunk.count});
    row += chunk.count;
  }
  return pieces;
}

}  // namespace

std::vector<AttentionGroup> group_by_length(const Step& step, int64_t block_size, const GroupLimits& limits) {
  std::vector<Piece> pieces = pieces_of(step);
  std::ranges::stable_sort(pieces, [](const Piece& a, const Piece& b) {
    return std::pair(a.count, a.last()) > std::pair(b.count, b.last());
  });
  std::vector<AttentionGroup> groups;
  for (const Piece& piece : pieces) {
    AttentionGroup* open = groups.empty() ? nullptr : &groups.back();
    const int64_t keys = piece.last() + 1, width = open ? open->blocks * block_size : 0;
    const bool alike = open && (open->queries == 1) == (piece.count == 1) && 2 * piece.count >= open->queries &&
                       2 * keys >= width && keys <= width;
    const bool room = open && (open->pieces + 1) * width <= limits.keys &&
                      (open->pieces + 1) * width * open->queries <= limits.scores;
    if (!alike || !room) open = &groups.emplace_back(shaped(piece.count, keys, block_size));
    add(*open, piece);
  }
  return groups;
}

std::vector<AttentionGroup> group_by_position(const Step& step, int64_t block_size) {
  std::vector<AttentionGroup> groups;
  for (const Piece& piece : pieces_of(step)) {
    for (int64_t start = piece.start; start <= piece.last();) {
      const int64_t tile_end = (start / kTile + 1) * kTile, end = std::min(tile_end, piece.last() + 1);
      AttentionGroup& group = groups.emplace_back(shaped(kTile, tile_end, block_size));
      group.first = start % kTile;
      add(group, {piece.sequence, piece.row + start - piece.start, start, end - start});
      start = end;
    }
  }
  return groups;
}

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

  const GroupLimits limits{kGroupBytes / (8 * config.num_kv_heads * config.head_dim),
                           kGroupBytes / (4 * config.num_heads)};
  std::vector<int64_t> order(blocks.size());
  int64_t place = 0;
  for (const AttentionGroup& group :
       deterministic ? group_by_position(step, size) : group_by_length(step, size, limits)) {
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
