#include "modeling/layout/context_shards.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "modeling/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad::modeling::layout;
using golden::Json;
using hexad::model::Range;
using hexad::modeling::Error;
using Ints = std::vector<int64_t>;

namespace {

// The elements at `indices` of dimension `dim`.
golden::Tensor selected(const golden::Tensor& tensor, size_t dim, const Ints& indices) {
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
  };
  const int64_t outer = product(tensor.shape.begin(), tensor.shape.begin() + dim);
  const int64_t inner = product(tensor.shape.begin() + dim + 1, tensor.shape.end());
  golden::Tensor result = tensor;
  result.shape[dim] = static_cast<int64_t>(indices.size());
  result.data.clear();
  for (int64_t i = 0; i < outer; ++i) {
    for (const int64_t index : indices) {
      const auto from = tensor.data.begin() + (i * tensor.shape[dim] + index) * inner;
      result.data.insert(result.data.end(), from, from + inner);
    }
  }
  return result;
}

void check_zigzag(const Json& test_case) {
  const int64_t ranks = test_case.at("config").at("context_parallel_size");
  const Json& want = test_case.at("expected");
  bool refused = false;
  for (const auto& [name, value] : test_case.at("inputs").items()) {
    if (value.is_null()) continue;
    const golden::Tensor tensor = golden::tensor(value);
    const size_t dim = name == "attention_mask" ? 2 : 1;
    const Ints row = {0, tensor.shape[dim]};
    if (want.contains("error")) {
      try {
        context_shard(row, ranks, 0);
      } catch (const Error&) {
        refused = true;
      }
      continue;
    }
    REQUIRE(static_cast<int64_t>(want.at("ranks").size()) == ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      INFO(name << " of rank " << rank);
      const golden::Tensor expected = golden::tensor(want.at("ranks")[rank].at(name));
      const golden::Tensor got = selected(tensor, dim, shard_indices(context_shard(row, ranks, rank)));
      CHECK(got.shape == expected.shape);
      CHECK(got.data == expected.data);
    }
  }
  CHECK(refused == want.contains("error"));
}

void check_flatten(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const int64_t length = golden::tensor(inputs.at("tokens")).shape[1];
  for (const auto& [name, value] : test_case.at("expected").items()) {
    INFO(name);
    const golden::Tensor given = golden::tensor(inputs.at(name));
    if (name.starts_with("cu_seqlens")) {
      std::vector<Ints> rows(given.shape[0]);
      for (size_t i = 0; i < given.data.size(); ++i) {
        rows[i / given.shape[1]].push_back(static_cast<int64_t>(given.data[i]));
      }
      CHECK(flatten_cu_seqlens(rows, length) == value.at("data").get<Ints>());
    } else if (name == "max_seqlen") {
      CHECK(*std::max_element(given.data.begin(), given.data.end()) == value.at("data")[0]);
    } else {
      CHECK(given.data == golden::tensor(value).data);  // flattening leaves the tokens where they are
    }
  }
}

void check_packed(const Json& test_case) {
  const Json& want = test_case.at("expected");
  Ints boundaries = want.at("cu_seqlens_padded").at("data").get<Ints>();
  const Ints row = want.at("all_input_ids").at("data").get<Ints>();
  const auto ranks = static_cast<int64_t>(want.at("ranks").size());
  // The last document holds the padding of the row, which NeMo-RL cuts where it does not divide.
  const int64_t last = boundaries.back() - boundaries[boundaries.size() - 2];
  if (ranks > 1) boundaries.back() -= last % (2 * ranks);
  for (const Json& rank : want.at("ranks")) {
    Ints got;
    for (const int64_t i : shard_indices(context_shard(boundaries, ranks, rank.at("cp_rank"))))
      got.push_back(row.at(i));
    CHECK(got == rank.at("packed_input_ids").at("data").get<Ints>());
  }
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("context_parallel: zigzag") {
    golden::for_each_case("context_parallel", check_zigzag,
                          [](const Json& test_case) { return golden::prefix(test_case) == "zigzag"; });
  }
  TEST_CASE("context_parallel: flatten") {
    golden::for_each_case("context_parallel", check_flatten,
                          [](const Json& test_case) { return golden::prefix(test_case) == "flatten_packed"; });
  }
  TEST_CASE("batching: context shards of packed rows") {
    golden::for_each_case("batching", check_packed, [](const Json& test_case) {
      const bool refused = test_case.at("expected").contains("error");  // before any rank: pack_layout_test.cpp
      return golden::prefix(test_case) == "megatron_packed" && !refused;
    });
  }
}

TEST_CASE("gathering the shards gives the row back, and every rank attends to as much") {
  std::mt19937 random(8);
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t ranks = 1 + random() % 6;
    Ints boundaries = {0};
    for (size_t i = random() % 6; i > 0; --i) {
      boundaries.push_back(boundaries.back() + static_cast<int64_t>(random() % 5) * 2 * ranks);
    }
    Ints gathered;
    std::vector<int64_t> work(ranks);  // pairs that causal attention computes
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const ContextShard shard = context_shard(boundaries, ranks, rank);
      const Ints indices = shard_indices(shard);
      CHECK(static_cast<int64_t>(indices.size()) == shard.tokens());
      CHECK(std::is_sorted(indices.begin(), indices.end()));
      for (const int64_t index : indices) {
        work[rank] += index - *std::prev(std::upper_bound(boundaries.begin(), boundaries.end(), index)) + 1;
      }
      for (size_t i = 0; i < boundaries.size(); ++i) CHECK(shard.cu_seqlens[i] * ranks == boundaries[i]);
      gathered.insert(gathered.end(), indices.begin(), indices.end());
    }
    CHECK(std::count(work.begin(), work.end(), work[0]) == ranks);
    const Ints positions = gathered_positions(boundaries, ranks);
    REQUIRE(static_cast<int64_t>(positions.size()) == boundaries.back());
    for (size_t i = 0; i < positions.size(); ++i) CHECK(gathered.at(positions[i]) == static_cast<int64_t>(i));
  }
}

TEST_CASE("neighbours together hold the shard of a group of groups") {
  std::mt19937 random(10);
  for (int trial = 0; trial < 100; ++trial) {
    const int64_t inner = 1 + random() % 4, outer = 1 + random() % 3, ranks = inner * outer;
    Ints boundaries = {0};
    for (size_t i = random() % 5; i > 0; --i)
      boundaries.push_back(boundaries.back() + static_cast<int64_t>(random() % 4) * 2 * ranks);
    for (int64_t group = 0; group < outer; ++group) {
      Ints held, merged;
      for (int64_t rank = group * inner; rank < (group + 1) * inner; ++rank)
        for (const int64_t index : shard_indices(context_shard(boundaries, ranks, rank))) held.push_back(index);
      for (const int64_t place : merged_positions(boundaries, ranks, group * inner, inner))
        merged.push_back(held.at(place));
      CHECK(merged == shard_indices(context_shard(boundaries, outer, group)));
    }
  }
}

TEST_CASE("slices are joined where they touch") {
  const Ints boundaries = {0, 8, 8, 16};
  CHECK((context_shard(boundaries, 1, 0).slices == std::vector<Range>{{0, 16}}));
  CHECK((context_shard(boundaries, 2, 0).slices == std::vector<Range>{{0, 2}, {6, 10}, {14, 16}}));
  CHECK((context_shard(boundaries, 2, 1).slices == std::vector<Range>{{2, 6}, {10, 14}}));
}

TEST_CASE("flattened rows keep every document") {
  std::mt19937 random(9);
  for (int trial = 0; trial < 100; ++trial) {
    const int64_t length = 1 + random() % 20;
    std::vector<Ints> rows(1 + random() % 4), padded;
    Ints want = {0};
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = {0};
      while (rows[i].back() < length) {
        rows[i].push_back(std::min<int64_t>(length, rows[i].back() + static_cast<int64_t>(random() % 8)));
        want.push_back(rows[i].back() + static_cast<int64_t>(i) * length);
      }
      for (size_t pads = random() % 3; pads > 0; --pads) rows[i].push_back(length);
    }
    CHECK(flatten_cu_seqlens(rows, length) == want);
  }
}

TEST_CASE("refused rows say what would fit") {
  CHECK_THROWS_WITH_AS(context_shard(Ints{0, 8, 18}, 4, 0),
                       "context parallel: document 1 has 10 tokens, want a multiple of 2 x 4 ranks = 8; pad it to 16",
                       Error);
  CHECK_THROWS_WITH_AS(gathered_positions(Ints{0, 8, 4}, 2), doctest::Contains("document 1 has -4 tokens"), Error);
  CHECK_THROWS_WITH_AS(context_shard(Ints{0, 8}, 2, 2), "context parallel: rank 2 is outside the group of 2", Error);
  CHECK_THROWS_WITH_AS(context_shard(Ints{0, 8}, 0, 0), "context parallel: 0 ranks, want at least 1", Error);
  CHECK_THROWS_WITH_AS(context_shard(Ints{1, 8}, 2, 0),
                       "context parallel: document boundaries must begin with 0, got [1, 8]", Error);
  CHECK_THROWS_WITH_AS(flatten_cu_seqlens({{0, 8}, {0, 5}}, 8),
                       "packed rows: the boundaries of row 1 must rise from 0 to its 8 tokens, got [0, 5]", Error);
}
