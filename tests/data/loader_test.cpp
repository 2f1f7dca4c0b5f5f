#include "core/data/dataset/loader.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/random.hpp"

using namespace hexad;
using namespace hexad::data;
using Rows = std::vector<int64_t>;

namespace {

// All batches of `epochs` epochs, one after another.
std::vector<Rows> visit(DataLoader& loader, int64_t epochs) {
  std::vector<Rows> batches;
  while (loader.epoch() < epochs) {
    if (std::optional<Rows> batch = loader.next()) batches.push_back(*batch);
  }
  return batches;
}

}  // namespace

TEST_CASE("an epoch visits every record once, in an order of its own") {
  DataLoader loader(10, {.batch_size = 3, .shuffle = true, .drop_last = false, .seed = 1});
  const std::vector<Rows> batches = visit(loader, 2);
  REQUIRE(batches.size() == 8);
  CHECK(loader.batches_per_epoch() == 4);
  Rows first, second;
  for (size_t i = 0; i < 8; ++i) {
    Rows& epoch = i < 4 ? first : second;
    epoch.insert(epoch.end(), batches[i].begin(), batches[i].end());
  }
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  CHECK(first == Rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("drop_last leaves the rest of an epoch out") {
  DataLoader loader(10, {.batch_size = 4, .shuffle = false, .drop_last = true, .seed = 1});
  CHECK(visit(loader, 1) == std::vector<Rows>{{0, 1, 2, 3}, {4, 5, 6, 7}});
}

TEST_CASE("a restored loader goes on exactly, wherever it was saved") {
  const LoaderOptions options{.batch_size = 3, .shuffle = true, .drop_last = true, .seed = 9};
  DataLoader whole(11, options);
  const std::vector<Rows> expected = visit(whole, 3);
  for (size_t cut = 0; cut <= expected.size(); ++cut) {
    DataLoader before(11, options), after(11, options);
    std::vector<Rows> got;
    while (got.size() < cut) {
      if (std::optional<Rows> batch = before.next()) got.push_back(*batch);
    }
    const nlohmann::ordered_json saved = before.state();
    after.restore(saved.get<LoaderState>());
    const std::vector<Rows> rest = visit(after, 3);
    got.insert(got.end(), rest.begin(), rest.end());
    CHECK(got == expected);
  }
}

TEST_CASE("loader errors") {
  CHECK_THROWS_WITH_AS(DataLoader(3, {.batch_size = 4}),
                       doctest::Contains("3 records, fewer than the 4 prompts of a step"), Error);
  DataLoader loader(8, {.batch_size = 4, .seed = 1});
  CHECK_THROWS_WITH_AS(loader.restore({0, 4, 9, 1}), doctest::Contains("was taken with 9 records"), Error);
  CHECK_THROWS_WITH_AS(loader.restore({0, 4, 8, 2}), doctest::Contains("and seed 2"), Error);
  CHECK_THROWS_AS(loader.restore({-1, 4, 8, 1}), Error);
}

TEST_CASE("counter-based numbers") {
  // Known answer of Philox 4x32-10 with counter and key 0 (Random123's kat_vectors): 6627e8d5 e169c58d ...
  CHECK(CounterRandom(0, 0).at(0) == 0xe169c58d6627e8d5);
  CounterRandom random(5, 6);
  const uint64_t first = random.next();
  CHECK(first == CounterRandom(5, 6).at(0));
  CHECK(first != CounterRandom(5, 7).at(0));
  for (int i = 0; i < 100; ++i) CHECK(random.below(7) < 7);
}
