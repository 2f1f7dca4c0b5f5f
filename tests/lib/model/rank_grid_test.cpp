#include "lib/model/rank_grid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "lib/model/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad::model;
using golden::Json;
using hexad::model::Error;

namespace {

RankGrid grid_of(const Json& config) {
  return RankGrid({.tp = config.at("tp"),
                   .pp = config.at("pp"),
                   .dp = config.at("dp"),
                   .ep = config.at("ep"),
                   .cp = config.at("cp")},
                  config.at("order"), config.value("rank_offset", 0));
}

void check_generator(const Json& test_case) {
  const Json& want = test_case.at("expected");
  if (want.contains("error")) {
    CHECK_THROWS_AS(grid_of(test_case.at("config")), Error);
    return;
  }
  const RankGrid grid = grid_of(test_case.at("config"));
  CHECK(grid.world_size() == want.at("world_size"));
  CHECK(grid.order() + "-gtp_remat" == want.at("order"));  // an axis that Hexad has not: its size is 1
  for (const auto& [token, groups] : want.at("ranks").items()) {
    INFO("groups along " << token);
    CHECK(grid.groups(parse_axes(token)) == groups.get<std::vector<RankList>>());
  }
}

RankGrid random_grid(std::mt19937& random) {
  std::vector<std::string> names = {"tp", "cp", "ep", "dp", "pp"};
  std::shuffle(names.begin(), names.end(), random);
  std::string order = names[0];
  for (size_t i = 1; i < names.size(); ++i) order += "-" + names[i];
  const auto size = [&] { return std::uniform_int_distribution<int64_t>(1, 4)(random); };
  const bool dense = random() % 2;
  return RankGrid({.tp = size(), .pp = size(), .dp = size(), .ep = dense ? 1 : size(), .cp = dense ? size() : 1}, order,
                  random() % 3 * 8);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("rank_grids: generator") {
    golden::for_each_case("rank_grids", check_generator,
                          [](const Json& test_case) { return golden::prefix(test_case) == "generator"; });
  }
}

TEST_CASE("groups partition the world, and a rank finds itself in its group") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    const RankGrid grid = random_grid(random);
    const int32_t first = grid.groups({Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp})[0][0];
    for (unsigned set = 0; set < 32; ++set) {
      std::vector<Axis> axes;
      for (unsigned i = 0; i < 5; ++i) {
        if (set >> i & 1) axes.push_back(static_cast<Axis>(i));
      }
      RankList seen;
      for (const RankList& ranks : grid.groups(axes)) {
        CHECK(static_cast<int64_t>(ranks.size()) == grid.size(axes));
        for (size_t place = 0; place < ranks.size(); ++place) {
          REQUIRE(grid.coordinate(ranks[place], axes) == static_cast<int64_t>(place));
          REQUIRE(grid.group_of(ranks[place], axes) == ranks);
        }
        seen.insert(seen.end(), ranks.begin(), ranks.end());
      }
      std::sort(seen.begin(), seen.end());
      RankList world(grid.world_size());
      std::iota(world.begin(), world.end(), first);
      REQUIRE(seen == world);
    }
  }
}

TEST_CASE("the first axis of the order joins neighbours") {
  const RankGrid grid({.tp = 2, .pp = 2, .dp = 2}, "tp-dp-pp");
  CHECK(grid.group_of(5, {Axis::tp}) == RankList{4, 5});
  CHECK(grid.group_of(5, {Axis::pp}) == RankList{1, 5});
  CHECK(grid.coordinate(5, Axis::pp) == 1);
  CHECK(grid.order() == "tp-dp-pp-ep-cp");
}

TEST_CASE("a refused grid says why") {
  const auto make = [](AxisSizes sizes, const char* order, int64_t first = 0) { RankGrid(sizes, order, first); };
  CHECK_THROWS_WITH_AS(make({.tp = 0}, "tp"), "rank grid: the size of tp is 0, want at least 1", Error);
  CHECK_THROWS_WITH_AS(make({.cp = 2}, "tp-dp-pp"),
                       "rank order 'tp-dp-pp' lacks cp, whose size is 2: add 'cp' to the order or set its size to 1",
                       Error);
  CHECK_THROWS_WITH_AS(make({.ep = 2, .cp = 3}, "tp-cp-ep-dp-pp"), doctest::Contains("ep = 2 and cp = 3 cannot share"),
                       Error);
  CHECK_THROWS_WITH_AS(make({}, "tp-sp"), doctest::Contains("'sp' is no parallel axis; known: tp, cp"), Error);
  CHECK_THROWS_WITH_AS(make({}, ""), doctest::Contains("'' is no parallel axis"), Error);
  CHECK_THROWS_WITH_AS(make({}, "tp-dp-TP"), doctest::Contains("'tp' is named twice"), Error);
  CHECK_THROWS_WITH_AS(make({}, "tp", -1), "rank grid: the first rank is -1, want 0 to 1048576", Error);
  CHECK_THROWS_WITH_AS(make({.tp = 1 << 20, .dp = 1 << 20}, "tp-dp"),
                       doctest::Contains("x 1 are more than 1048576 ranks"), Error);
  CHECK_THROWS_WITH_AS(RankGrid({.tp = 2}, "tp", 8).coordinate(10, Axis::tp), "rank grid: rank 10 is outside [8, 10)",
                       Error);
}
