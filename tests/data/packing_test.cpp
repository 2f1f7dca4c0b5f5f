#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "core/data/packing/packer.hpp"
#include "lib/base/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::data;
using golden::Json;

namespace {

std::optional<int64_t> optional_int(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional<int64_t>(value.get<int64_t>());
}

Bins run(const Json& test_case) {
  const Json& config = test_case.at("config");
  const auto lengths = test_case.at("inputs").at("sequence_lengths").get<std::vector<int64_t>>();
  const int64_t capacity = config.at("bin_capacity");
  const PackingLimits limits{optional_int(config.at("min_bin_count")), optional_int(config.at("bin_count_multiple"))};
  const PackingAlgorithm algorithm = packing_algorithm_named(config.at("algorithm").get<std::string>());
  if (!test_case.at("inputs").contains("processing_order")) return pack(algorithm, lengths, capacity, limits);
  // Another random generator made the order, so it is given.
  std::vector<int64_t> order;
  for (const Json& pair : test_case.at("inputs").at("processing_order")) order.push_back(pair.at(1));
  return adjust_bin_count(pack_first_fit(lengths, order, capacity), limits);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("sequence_packing") {
    golden::for_each_case("sequence_packing", [](const Json& test_case) {
      if (test_case.at("expected").contains("error")) {
        CHECK_THROWS_AS(run(test_case), Error);
        return;
      }
      const Bins bins = run(test_case);
      CHECK(bins == test_case.at("expected").at("bins").get<Bins>());
    });
  }
}

TEST_CASE("shuffled packing is a permutation that depends on the seed alone") {
  std::vector<int64_t> lengths(64);
  std::iota(lengths.begin(), lengths.end(), 1);
  const Bins first = pack(PackingAlgorithm::first_fit_shuffle, lengths, 100, {}, 7);
  CHECK(first == pack(PackingAlgorithm::first_fit_shuffle, lengths, 100, {}, 7));
  CHECK(first != pack(PackingAlgorithm::first_fit_shuffle, lengths, 100, {}, 8));
  std::vector<int64_t> seen;
  for (const auto& bin : first) seen.insert(seen.end(), bin.begin(), bin.end());
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(64);
  std::iota(all.begin(), all.end(), 0);
  CHECK(seen == all);
}

TEST_CASE("packing errors say what to change") {
  CHECK_THROWS_WITH_AS(packing_algorithm_named("first_fit_decreasin"),
                       doctest::Contains("did you mean 'first_fit_decreasing'?"), Error);
  const std::vector<int64_t> lengths = {3, 12};
  CHECK_THROWS_WITH_AS(pack(PackingAlgorithm::concatenative, lengths, 10),
                       doctest::Contains("a sequence of 12 tokens (padded) exceeds the bin capacity of 10"), Error);
  CHECK_THROWS_WITH_AS(
      pack(PackingAlgorithm::concatenative, lengths, 20, {.min_bin_count = 3, .bin_count_multiple = {}}),
      doctest::Contains("cannot make 3 bins of 2 sequences"), Error);
}
