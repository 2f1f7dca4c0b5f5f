// How the rows of a step are cut into batched calls of attention. What these compute: executor_test.cpp.
#include "plugins/native/model/paged_attention.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <set>

using hexad::native::AttentionGroup;
using hexad::native::Chunk;
using hexad::native::group_by_length;
using hexad::native::Sequence;
using hexad::native::Step;

namespace {

constexpr int64_t kBlock = 4, kUnlimited = int64_t{1} << 40;

// A step of chunks {start, count}; each sequence has blocks of its own.
struct Pass {
  std::vector<std::unique_ptr<Sequence>> sequences;
  Step step;
  explicit Pass(const std::vector<std::pair<int64_t, int64_t>>& chunks) {
    int32_t block = 0;
    for (const auto& [start, count] : chunks) {
      sequences.push_back(std::make_unique<Sequence>());
      for (int64_t i = 0; i < (start + count + kBlock - 1) / kBlock; ++i) sequences.back()->blocks.push_back(block++);
      step.chunks.push_back({sequences.back().get(), start, count, {}});
    }
  }
  int64_t rows() const {
    return std::accumulate(step.chunks.begin(), step.chunks.end(), int64_t{0},
                           [](int64_t sum, const Chunk& chunk) { return sum + chunk.count; });
  }
};

// Every row is in one group, at its position, before the fillers that repeat it.
void check_covers(const Pass& pass, const std::vector<AttentionGroup>& groups) {
  std::vector<int64_t> position_of;
  for (const Chunk& chunk : pass.step.chunks)
    for (int64_t i = 0; i < chunk.count; ++i) position_of.push_back(chunk.start + i);
  std::set<int64_t> seen;
  for (const AttentionGroup& group : groups) {
    CHECK(std::ssize(group.rows) == group.pieces * group.queries);
    CHECK(std::ssize(group.table) == group.pieces * group.blocks);
    CHECK(std::ssize(group.last) == group.pieces);
    std::set<int64_t> own;
    for (size_t i = 0; i < group.rows.size(); ++i) {
      own.insert(group.rows[i]);
      CHECK(group.positions[i] == position_of[static_cast<size_t>(group.rows[i])]);
      CHECK(group.positions[i] < group.blocks * kBlock);
    }
    for (const int64_t row : own) CHECK(seen.insert(row).second);
  }
  CHECK(std::ssize(seen) == pass.rows());
}

}  // namespace

TEST_CASE("prompts of similar length are one group, and so are rows that wait for a token") {
  const Pass pass({{0, 6}, {9, 1}, {0, 5}, {0, 8}, {12, 1}, {0, 4}, {10, 1}});
  const std::vector<AttentionGroup> groups = group_by_length(pass.step, kBlock, {kUnlimited, kUnlimited});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].pieces == 4);
  CHECK(groups[0].queries == 8);
  CHECK(groups[0].blocks == 2);
  CHECK(groups[0].last == std::vector<int64_t>{7, 5, 4, 3});
  CHECK(std::vector<int64_t>(groups[0].rows.begin() + 8, groups[0].rows.begin() + 16) ==
        std::vector<int64_t>{0, 1, 2, 3, 4, 5, 5, 5});
  CHECK(groups[1].pieces == 3);
  CHECK(groups[1].queries == 1);
  CHECK(groups[1].last == std::vector<int64_t>{12, 10, 9});
  check_covers(pass, groups);
}

TEST_CASE("what has less than half of a group's rows or keys begins another one") {
  const Pass rows({{0, 8}, {0, 3}}), keys({{40, 8}, {0, 8}}), longer({{0, 8}, {40, 6}}), alone({{0, 2}, {1, 1}});
  for (const Pass* pass : {&rows, &keys, &longer, &alone}) {
    const std::vector<AttentionGroup> groups = group_by_length(pass->step, kBlock, {kUnlimited, kUnlimited});
    CHECK(groups.size() == 2);
    check_covers(*pass, groups);
  }
}

TEST_CASE("a group holds as many keys and scores as it may, and a piece at least") {
  const Pass pass({{0, 8}, {0, 8}, {0, 8}, {0, 8}});
  const auto sizes = [&](int64_t keys, int64_t scores) {
    std::vector<int64_t> pieces;
    for (const AttentionGroup& group : group_by_length(pass.step, kBlock, {keys, scores}))
      pieces.push_back(group.pieces);
    return pieces;
  };
  CHECK(sizes(24, kUnlimited) == std::vector<int64_t>{3, 1});
  CHECK(sizes(kUnlimited, 2 * 64) == std::vector<int64_t>{2, 2});
  CHECK(sizes(1, 1) == std::vector<int64_t>{1, 1, 1, 1});
  check_covers(pass, group_by_length(pass.step, kBlock, {24, kUnlimited}));
}
