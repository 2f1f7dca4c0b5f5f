// Plans of attention: every row meets every key that it may see exactly once, whatever is shared and however it is cut.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "plugins/native/model/attention_plan.hpp"

using namespace hexad::native;

namespace {

struct Rows {
  std::vector<std::vector<int32_t>> tables;
  std::vector<DecodeRow> decodes;
  std::vector<PromptRows> prompts;
};

// Groups of one to nine rows that start from the same blocks, then prompts.
Rows random_rows(std::mt19937_64& rng, int64_t block_size) {
  Rows rows;
  int32_t next_block = 0;
  std::vector<int32_t> lengths, counts;
  const auto pick = [&](int64_t low, int64_t high) { return low + int64_t(rng() % uint64_t(high - low + 1)); };
  for (int64_t groups = pick(0, 5); groups > 0; --groups) {
    std::vector<int32_t> prompt(pick(0, 700) / block_size);
    for (int32_t& block : prompt) block = next_block++;
    for (int64_t members = pick(1, 9); members > 0; --members) {
      const auto length = int32_t(int64_t(prompt.size()) * block_size + pick(1, 300));
      std::vector<int32_t>& table = rows.tables.emplace_back(prompt);
      while (int64_t(table.size()) * block_size < length) table.push_back(next_block++);
      lengths.push_back(length);
    }
  }
  const size_t decodes = lengths.size();
  for (int64_t prompts = pick(0, 3); prompts > 0; --prompts) {
    counts.push_back(int32_t(pick(2, 90)));
    lengths.push_back(counts.back() + int32_t(pick(0, 200)));
    std::vector<int32_t>& table = rows.tables.emplace_back();
    while (int64_t(table.size()) * block_size < lengths.back()) table.push_back(next_block++);
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int32_t* blocks = rows.tables[i].data();
    if (i < decodes)
      rows.decodes.push_back({blocks, lengths[i]});
    else
      rows.prompts.push_back({blocks, lengths[i], counts[i - decodes]});
  }
  return rows;
}

// What an item of a level covers, for each of its rows: positions [begin, end) of its request, which start at block 0
// of the level's table.
struct Reach {
  int64_t row, partial, begin, end;
};

std::vector<Reach> reaches(const PlanLevel& level, const PlanShape& shape, int64_t tile_size, bool partials) {
  std::vector<Reach> result;
  const int64_t share = shape.heads / shape.kv_heads;
  std::map<std::pair<int64_t, int64_t>, int64_t> heads_seen;  // of a row and chunk
  for (int64_t item = 0; item < level.items(); ++item) {
    const int64_t request = level.request[item];
    const int64_t blocks = level.block_indptr[request + 1] - level.block_indptr[request];
    const int64_t length = (blocks - 1) * shape.block_size + level.last_block_size[request];
    const int64_t size = partials ? level.chunk_size : length;
    const int64_t chunks = (length + size - 1) / size, chunk = level.chunk[item];
    REQUIRE(chunk < chunks);
    const int64_t first = level.q_indptr[request], rows = level.q_indptr[request + 1] - first;
    for (int64_t i = level.tile[item] * tile_size; i < (level.tile[item] + 1) * tile_size && i < rows * share; ++i) {
      const int64_t row = i / share;
      if (++heads_seen[{first + row, chunk}] != share) continue;  // counted when its last head is met
      const int64_t base = level.o_indptr[request];
      result.push_back({first + row, partials ? base + row * chunks + chunk : base + row, chunk * size,
                        std::min(length, (chunk + 1) * size)});
    }
  }
  for (const auto& [key, heads] : heads_seen) CHECK(heads == share);
  return result;
}

void check_plan(const PlanShape& shape, const Rows& rows, const AttentionPlan& plan) {
  const PlanBounds bounds = plan_bounds(shape, int64_t(rows.decodes.size()), int64_t(plan.prompt.q_indptr.back()),
                                        int64_t(rows.prompts.size()));
  CHECK(plan.own.items() <= bounds.own_items);
  CHECK(plan.shared.items() <= bounds.shared_items);
  CHECK(plan.prompt.items() <= bounds.prompt_items);
  CHECK(plan.partials <= bounds.partials);
  REQUIRE(plan.merge.size() == rows.decodes.size());
  std::vector<std::vector<int>> seen(rows.decodes.size());
  for (size_t i = 0; i < seen.size(); ++i) seen[i].assign(rows.decodes[i].length, 0);
  std::vector<int> partial_used(plan.partials, 0);
  for (const bool shared : {false, true}) {
    const PlanLevel& level = shared ? plan.shared : plan.own;
    if (level.items() == 0) continue;
    for (const Reach& reach : reaches(level, shape, shared ? kSharedTile : kOwnTile, true)) {
      const MergeRow& merge = plan.merge[reach.row];
      const int64_t from = shared ? merge.shared : merge.own, count = shared ? merge.shared_count : merge.own_count;
      CHECK((reach.partial >= from && reach.partial < from + count));
      ++partial_used[reach.partial];
      // The level's blocks are a part of the row's own table: find where it begins.
      int64_t request = reach.row;
      if (shared)
        for (request = 0; level.q_indptr[request + 1] <= reach.row;) ++request;
      const int32_t* blocks = level.blocks.data() + level.block_indptr[request];
      const DecodeRow& row = rows.decodes[reach.row];
      int64_t offset = 0;
      while (row.blocks[offset] != blocks[0]) ++offset;
      for (int64_t at = reach.begin; at < reach.end; ++at) {
        const int64_t position = offset * shape.block_size + at;
        REQUIRE(position < row.length);
        CHECK(row.blocks[position / shape.block_size] == blocks[at / shape.block_size]);
        ++seen[reach.row][position];
      }
    }
  }
  for (const auto& row : seen)
    for (const int times : row) REQUIRE(times == 1);
  for (const int times : partial_used) CHECK(times == 1);

  if (rows.prompts.empty()) return;
  size_t prompt_rows = 0;
  for (const Reach& reach : reaches(plan.prompt, shape, kPromptTile, false)) {
    CHECK(reach.partial == reach.row);
    CHECK(reach.begin == 0);
    ++prompt_rows;
  }
  CHECK(prompt_rows == size_t(plan.prompt.q_indptr.back()) - rows.decodes.size());
}

}  // namespace

TEST_CASE("every row meets each of its keys once, and partial results are where the merge looks for them") {
  std::mt19937_64 rng(11);
  AttentionPlan plan;  // used again, as the generator does
  int64_t shared_items = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t heads[][2] = {{4, 4}, {32, 8}, {12, 2}, {32, 1}, {9, 3}};
    const auto& [q, kv] = heads[rng() % 5];
    const int64_t block_sizes[] = {1, 3, 16, 48};
    const PlanShape shape{q, kv, block_sizes[rng() % 4], trial % 5 != 0};
    const Rows rows = random_rows(rng, shape.block_size);
    plan_attention(shape, rows.decodes, rows.prompts, plan);
    check_plan(shape, rows, plan);
    if (!shape.share) CHECK(plan.shared.items() == 0);
    shared_items += plan.shared.items();
  }
  CHECK(shared_items > 100);
}

TEST_CASE("shared beginnings that are carried on are whole tiles of keys in one chunk") {
  std::mt19937_64 rng(12);
  AttentionPlan plan;
  int64_t shared_items = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t block_sizes[] = {1, 3, 16, 48, 64};
    PlanShape shape{32, 8, block_sizes[rng() % 5]};
    shape.carried_tile = 64;
    const Rows rows = random_rows(rng, shape.block_size);
    plan_attention(shape, rows.decodes, rows.prompts, plan);
    check_plan(shape, rows, plan);
    for (int64_t item = 0; item < plan.shared.items(); ++item) {
      const int64_t request = plan.shared.request[item];
      const int64_t blocks = plan.shared.block_indptr[request + 1] - plan.shared.block_indptr[request];
      CHECK(plan.shared.last_block_size[request] == shape.block_size);
      CHECK(blocks * shape.block_size % 64 == 0);
      CHECK(plan.shared.chunk[item] == 0);
    }
    for (const MergeRow& row : plan.merge) CHECK(row.shared_count <= 1);
    shared_items += plan.shared.items();
  }
  CHECK(shared_items > 50);
}

TEST_CASE("a group's beginning is read once for all of its rows; few long rows are cut, many are not") {
  const PlanShape shape{32, 8, 16};
  std::vector<std::vector<int32_t>> tables(512);
  std::vector<DecodeRow> rows;
  int32_t next = 10000;
  for (int i = 0; i < 512; ++i) {
    for (int block = 0; block < 64; ++block) tables[i].push_back(i / 16 * 64 + block);
    for (int block = 0; block < 32; ++block) tables[i].push_back(next++);
    rows.push_back({tables[i].data(), 96 * 16});
  }
  AttentionPlan plan;
  plan_attention(shape, rows, {}, plan);
  CHECK(plan.own.items() == 512);
  CHECK(plan.own.blocks.size() == 512 * 32);
  CHECK(plan.shared.items() == 32);  // 16 rows x 4 heads are one tile
  CHECK(plan.shared.blocks.size() == 32 * 64);
  CHECK(plan.partials == 2 * 512);

  plan_attention(shape, std::span(rows).first(1), {}, plan);
  CHECK(plan.shared.items() == 0);
  CHECK(plan.own.items() == 24);  // 1536 positions by 64
}
