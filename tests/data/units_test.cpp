#include "core/data/batching.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::data;

namespace {

const std::vector<int64_t> kLengths = {5, 9, 3, 4, 12, 2, 7, 7, 1, 6, 8, 3};  // six pairs

ShardOptions packed(int64_t shards, int64_t tokens) {
  ShardOptions options;
  options.shards = shards;
  options.packing = SequencePacking{PackingAlgorithm::modified_first_fit_decreasing, tokens, 2};
  return options;
}

// Every pair is whole in one micro-batch, its rows in order; every row is somewhere once.
void check_pairs(const Sharding& sharding, size_t rows) {
  std::vector<int64_t> seen;
  for (const Shard& shard : sharding.shards) {
    for (const auto& global_batch : shard.global_batches) {
      for (const MicroBatch& part : global_batch) {
        REQUIRE(part.rows.size() % 2 == 0);
        for (size_t i = 0; i < part.rows.size(); i += 2) {
          CHECK(part.rows[i] % 2 == 0);
          CHECK(part.rows[i + 1] == part.rows[i] + 1);
        }
        seen.insert(seen.end(), part.rows.begin(), part.rows.end());
      }
    }
  }
  CHECK(seen == sharding.order);
  std::sort(seen.begin(), seen.end());
  REQUIRE(seen.size() == rows);
  for (size_t i = 0; i < rows; ++i) CHECK(seen[i] == static_cast<int64_t>(i));
  CHECK(sharding.inverse == inverse_permutation(sharding.order));
}

}  // namespace

TEST_CASE("pairs stay in one micro-batch, packed, by tokens or by number, on one rank or several") {
  check_pairs(shard_units(kLengths, 2, packed(1, 24)), 12);
  check_pairs(shard_units(kLengths, 2, packed(3, 24)), 12);
  ShardOptions dynamic;
  dynamic.shards = 2;
  dynamic.dynamic = DynamicBatching{48, 4};
  check_pairs(shard_units(kLengths, 2, dynamic), 12);
  ShardOptions plain;
  plain.shards = 3;
  plain.micro_batch_size = 1;
  const Sharding sharding = shard_units(kLengths, 2, plain);
  check_pairs(sharding, 12);
  CHECK(sharding.shards[0].global_batches[0].size() == 2);  // two pairs a rank, one a micro-batch
  CHECK(sharding.shards[0].global_batches[0][0].length == 9);
}

TEST_CASE("a pack holds what its rows take, and a padded micro-batch of pairs keeps its budget") {
  const Sharding packs = shard_units(kLengths, 2, packed(1, 24));
  for (const MicroBatch& part : packs.shards[0].global_batches[0]) {
    int64_t tokens = 0;
    for (const int64_t row : part.rows) tokens += (kLengths[row] + 1) / 2 * 2;
    CHECK(part.length == tokens);
    CHECK(tokens <= 24);
  }
  ShardOptions dynamic;
  dynamic.dynamic = DynamicBatching{48, 1};
  const Sharding padded = shard_units(kLengths, 2, dynamic);
  for (const MicroBatch& part : padded.shards[0].global_batches[0])
    CHECK(part.length * static_cast<int64_t>(part.rows.size()) <= 48);
}

TEST_CASE("batch sizes count pairs") {
  ShardOptions options;
  options.batch_size = 3;
  const Sharding sharding = shard_units(kLengths, 2, options);
  REQUIRE(sharding.shards[0].global_batches.size() == 2);
  CHECK(sharding.shards[0].global_batches[0].at(0).rows.size() == 6);
}

TEST_CASE("single rows are sharded as ever") {
  CHECK(shard_units(kLengths, 1, packed(2, 24)).order == shard(kLengths, packed(2, 24)).order);
}

TEST_CASE("what cannot be kept together is refused") {
  CHECK_THROWS_WITH_AS(shard_units(std::vector<int64_t>{1, 2, 3}, 2, {}),
                       doctest::Contains("3 rows are not a multiple of 2 that belong together"), Error);
  CHECK_THROWS_WITH_AS(
      shard_units(kLengths, 2, packed(1, 14)),
      doctest::Contains(
          "2 sequences that stay in one micro-batch (a preference) have 16 padded tokens, more than its 14"),
      Error);
  ShardOptions dynamic;
  dynamic.dynamic = DynamicBatching{20, 1};
  CHECK_THROWS_WITH_AS(shard_units(kLengths, 2, dynamic), doctest::Contains("have 24 padded tokens, more than its 20"),
                       Error);
}
