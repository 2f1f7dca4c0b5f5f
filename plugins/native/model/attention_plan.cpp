#include "plugins/native/model/attention_plan.hpp"

#include <algorithm>
#include <numeric>

namespace hexad::native {
namespace {

// Thread blocks that a GPU of 132 multiprocessors runs at once. What a plan computes does not depend on it.
constexpr int64_t kSlots = 264;
// Chunks are whole tiles of keys.
constexpr int64_t kOwnKeys = 64, kSharedKeys = 128;
// A shared beginning pays from here on: below it, partial results cost as much as they save.
constexpr int64_t kLeastShared = 128;
constexpr int64_t kMostSharedChunks = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t tiles_of(const PlanShape& shape, int64_t rows, int64_t tile) {
  return ceil_div(rows * (shape.heads / shape.kv_heads), tile);
}

// Starts a request of `rows` query rows that see `length` positions of `blocks`.
void add_request(PlanLevel& level, int64_t rows, const int32_t* blocks, int64_t length, int64_t block_size) {
  const int64_t count = ceil_div(length, block_size);
  level.q_indptr.push_back(level.q_indptr.back() + static_cast<int32_t>(rows));
  level.blocks.insert(level.blocks.end(), blocks, blocks + count);
  level.block_indptr.push_back(static_cast<int32_t>(level.blocks.size()));
  level.last_block_size.push_back(static_cast<int32_t>(count == 0 ? 0 : length - (count - 1) * block_size));
}

void add_items(PlanLevel& level, int64_t request, int64_t tiles, int64_t chunks) {
  for (int64_t tile = tiles - 1; tile >= 0; --tile) {  // of prompts, late tiles see more keys
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      level.request.push_back(static_cast<int32_t>(request));
      level.tile.push_back(static_cast<int32_t>(tile));
      level.chunk.push_back(static_cast<int32_t>(chunk));
    }
  }
}

// Neighbouring decode rows [begin, end) and how many leading blocks they have in common.
struct Group {
  int64_t begin, end, blocks;
};

std::vector<Group> groups_of(const PlanShape& shape, std::span<const DecodeRow> rows) {
  const int64_t count = static_cast<int64_t>(rows.size());
  const int64_t least = std::max<int64_t>(1, ceil_div(kLeastShared, shape.block_size));
  const int64_t unit = shape.carried_tile > 0 ? shape.carried_tile / std::gcd(shape.carried_tile, shape.block_size) : 1;
  // A row writes into its last block, which is nobody else's.
  const auto most = [&](int64_t row) { return (rows[row].length - 1) / shape.block_size; };
  std::vector<Group> groups;
  for (int64_t row = 0; row < count;) {
    Group group{row, row + 1, most(row)};
    for (; shape.share && group.end < count; ++group.end) {
      const int64_t limit = std::min(group.blocks, most(group.end));
      const int32_t *first = rows[row].blocks, *other = rows[group.end].blocks;
      const int64_t common = (std::mismatch(first, first + limit, other).first - first) / unit * unit;
      if (common < least) break;
      group.blocks = common;
    }
    if (group.end - group.begin == 1) group.blocks = 0;
    groups.push_back(group);
    row = group.end;
  }
  return groups;
}

void plan_shared(const PlanShape& shape, std::span<const DecodeRow> rows, std::span<const Group> groups,
                 AttentionPlan& plan) {
  PlanLevel& level = plan.shared;
  int64_t tiles = 0, longest = 0;
  for (const Group& group : groups) {
    if (group.blocks == 0) continue;
    tiles += tiles_of(shape, group.end - group.begin, kSharedTile);
    longest = std::max(longest, group.blocks * shape.block_size);
  }
  if (tiles == 0) return;
  const int64_t fill = (kSlots + tiles * shape.kv_heads / 2) / (tiles * shape.kv_heads);
  const int64_t chunks = shape.carried_tile > 0 ? 1 : std::clamp<int64_t>(fill, 1, kMostSharedChunks);
  const int64_t size = ceil_div(ceil_div(longest, chunks), kSharedKeys) * kSharedKeys;
  level.chunk_size = static_cast<int32_t>(size);
  for (const Group& group : groups) {
    const int64_t members = group.end - group.begin, length = group.blocks * shape.block_size;
    const int64_t parts = ceil_div(length, size);
    add_request(level, members, rows[group.begin].blocks, length, shape.block_size);
    level.o_indptr.push_back(static_cast<int32_t>(plan.partials));
    if (parts == 0) continue;
    add_items(level, level.requests() - 1, tiles_of(shape, members, kSharedTile), parts);
    for (int64_t row = group.begin; row < group.end; ++row) {
      plan.merge[row].shared = static_cast<int32_t>(plan.partials);
      plan.merge[row].shared_count = static_cast<int32_t>(parts);
      plan.partials += parts;
    }
  }
}

void plan_own(const PlanShape& shape, std::span<const DecodeRow> rows, std::span<const Group> groups,
              AttentionPlan& plan) {
  PlanLevel& level = plan.own;
  std::vector<int64_t> lengths;
  for (const Group& group : groups) {
    const int64_t skipped = group.blocks * shape.block_size;
    for (int64_t row = group.begin; row < group.end; ++row) {
      lengths.push_back(rows[row].length - skipped);
      add_request(level, 1, rows[row].blocks + group.blocks, lengths.back(), shape.block_size);
    }
  }
  const int64_t tiles = tiles_of(shape, 1, kOwnTile),
                total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const int64_t fair = ceil_div(total * shape.kv_heads * tiles, 2 * kSlots);
  const int64_t size = std::max<int64_t>(1, ceil_div(fair, kOwnKeys)) * kOwnKeys;
  level.chunk_size = static_cast<int32_t>(size);
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t parts = ceil_div(lengths[row], size);
    plan.merge[row].own = static_cast<int32_t>(plan.partials);
    plan.merge[row].own_count = static_cast<int32_t>(parts);
    level.o_indptr.push_back(static_cast<int32_t>(plan.partials));
    plan.partials += parts;
  }
  // Long rows first, so that none is left to run alone at the end.
  std::vector<int64_t> order(rows.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  for (const int64_t row : order) add_items(level, row, tiles, plan.merge[row].own_count);
}

void plan_prompts(const PlanShape& shape, int64_t first_row, std::span<const PromptRows> prompts, PlanLevel& level) {
  level.q_indptr.back() = static_cast<int32_t>(first_row);
  for (const PromptRows& prompt : prompts) {
    level.o_indptr.push_back(level.q_indptr.back());
    add_request(level, prompt.rows, prompt.blocks, prompt.length, shape.block_size);
    add_items(level, level.requests() - 1, tiles_of(shape, prompt.rows, kPromptTile), 1);
    level.chunk_size = std::max(level.chunk_size, prompt.length);
  }
}

}  // namespace

void PlanLevel::clear() {
  for (std::vector<int32_t>* array : {&last_block_size, &blocks, &request, &tile, &chunk, &o_indptr}) array->clear();
  q_indptr.assign(1, 0);
  block_indptr.assign(1, 0);
  chunk_size = 0;
}

void plan_attention(const PlanShape& shape, std::span<const DecodeRow> decodes, std::span<const PromptRows> prompts,
                    AttentionPlan& plan) {
  for (PlanLevel* level : {&plan.own, &plan.shared, &plan.prompt}) level->clear();
  plan.merge.assign(decodes.size(), {});
  plan.partials = 0;
  const std::vector<Group> groups = groups_of(shape, decodes);
  plan_own(shape, decodes, groups, plan);
  plan_shared(shape, decodes, groups, plan);
  plan_prompts(shape, static_cast<int64_t>(decodes.size()), prompts, plan.prompt);
}

PlanBounds plan_bounds(const PlanShape& shape, int64_t decode_rows, int64_t prompt_rows, int64_t prompts) {
  const int64_t own_tiles = tiles_of(shape, 1, kOwnTile);
  // Chunks of a row: its share of what fills the slots twice, and one.
  const int64_t own = decode_rows * own_tiles + ceil_div(2 * kSlots, shape.kv_heads);
  const int64_t tiles = tiles_of(shape, decode_rows, kSharedTile) + decode_rows / 2;
  return {own, kMostSharedChunks * tiles, tiles_of(shape, prompt_rows, kPromptTile) + prompts,
          own + kMostSharedChunks * decode_rows};
}

}  // namespace hexad::native
