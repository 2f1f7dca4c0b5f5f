#include "lib/model/process_groups.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "lib/model/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad::model;
using golden::Json;
using hexad::model::Error;

namespace {

std::optional<int64_t> optional_of(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional<int64_t>(value.get<int64_t>());
}

ParallelSizes sizes_of(const Json& config) {
  ParallelSizes sizes;
  sizes.world = config.at("world_size");
  sizes.tensor = config.at("tensor_model_parallel_size");
  sizes.pipeline = config.at("pipeline_model_parallel_size");
  sizes.context = config.at("context_parallel_size");
  sizes.expert = config.at("expert_model_parallel_size");
  sizes.virtual_pipeline = optional_of(config.at("virtual_pipeline_model_parallel_size"));
  sizes.expert_tensor = optional_of(config.at("expert_tensor_parallel_size"));
  sizes.optimizer_instances = config.at("num_distributed_optimizer_instances");
  if (!config.at("hierarchical_context_parallel_sizes").is_null()) {
    sizes.hierarchical_context = config.at("hierarchical_context_parallel_sizes").get<std::vector<int64_t>>();
  }
  sizes.order = config.at("order");
  return sizes;
}

// The group of a kind that holds `rank`; null where there is none: of the embedding in a middle stage, for example.
const ProcessGroup* group_with(const std::vector<ProcessGroup>& groups, GroupKind kind, int64_t rank) {
  for (const ProcessGroup& group : groups) {
    if (group.kind != kind || group.level != 0) continue;
    if (std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end()) return &group;
  }
  return nullptr;
}

void check_rank(const RankCoordinates& got, const Json& want) {
  CHECK(got.tp == want.at("tensor_model_parallel_rank"));
  CHECK(got.pp == want.at("pipeline_model_parallel_rank"));
  CHECK(got.cp == want.at("context_parallel_rank"));
  CHECK(got.dp == want.at("data_parallel_rank"));
  CHECK(got.dp_cp == want.at("data_parallel_with_cp_rank"));
  CHECK(got.ep == want.at("expert_model_parallel_rank"));
  CHECK(got.etp == want.at("expert_tensor_parallel_rank"));
  CHECK(got.edp == want.at("expert_data_parallel_rank"));
  CHECK(got.word_embedding == want.at("is_rank_in_embedding_group"));
  CHECK(got.position_embedding == want.at("is_rank_in_position_embedding_group"));
}

void check_initialize(const Json& test_case) {
  const Json& want = test_case.at("expected");
  const ParallelSizes sizes = sizes_of(test_case.at("config"));
  if (want.contains("error")) {
    CHECK_THROWS_AS(ParallelGrid{sizes}, Error);
    return;
  }
  const ParallelGrid grid(sizes);
  CHECK(grid.data_parallel() == want.at("data_parallel_size"));
  CHECK(grid.expert_data_parallel() == want.at("expert_data_parallel_size"));
  Json got_groups = Json::array(), want_groups = Json::array();
  for (const ProcessGroup& group : process_groups(grid)) got_groups.push_back({group.description(), group.ranks});
  for (const Json& group : want.at("groups")) {
    // Generalised tensor parallelism, which Hexad has not.
    if (group[0].get<std::string>().find("GTP") == std::string::npos) want_groups.push_back(group);
  }
  CHECK(got_groups == want_groups);
  for (const Json& rank : want.at("ranks")) {
    INFO("rank " << rank.at("rank").get<int>());
    check_rank(grid.coordinates(rank.at("rank")), rank);
  }
}

// Sizes that fit, drawn so that both grids cut the same world.
ParallelSizes random_sizes(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  ParallelSizes sizes;
  sizes.tensor = pick({1, 2, 3});
  sizes.context = pick({1, 2, 4});
  sizes.pipeline = pick({1, 2, 3});
  const int64_t dp = pick({1, 2, 4});
  sizes.world = sizes.tensor * sizes.context * sizes.pipeline * dp;
  sizes.expert_tensor = pick({1, sizes.tensor});
  sizes.expert = pick({1, dp, sizes.context, sizes.context * dp});
  sizes.optimizer_instances =
      dp % 2 == 0 && sizes.expert <= sizes.context && sizes.expert_tensor == sizes.tensor ? pick({1, 2}) : 1;
  if (sizes.context == 4) sizes.hierarchical_context = {2, 2};
  return sizes;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("rank_grids: initialize") {
    golden::for_each_case("rank_grids", check_initialize,
                          [](const Json& test_case) { return golden::prefix(test_case) == "initialize"; });
  }
}

TEST_CASE("the groups of a kind partition the world") {
  std::mt19937 random(2);
  for (int trial = 0; trial < 60; ++trial) {
    const ParallelGrid grid(random_sizes(random));
    const auto groups = process_groups(grid);
    std::set<std::pair<GroupKind, int64_t>> kinds;
    for (const ProcessGroup& group : groups) kinds.insert({group.kind, group.level});
    for (const auto& [kind, level] : kinds) {
      RankList seen;
      for (const RankList& ranks : groups_of_kind(groups, kind, level)) {
        seen.insert(seen.end(), ranks.begin(), ranks.end());
      }
      std::sort(seen.begin(), seen.end());
      CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
      if (kind == GroupKind::embedding || kind == GroupKind::position_embedding) continue;
      CHECK(static_cast<int64_t>(seen.size()) == grid.sizes().world);
    }
  }
}

TEST_CASE("a rank stands in its groups where its coordinates say") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 30; ++trial) {
    const ParallelGrid grid(random_sizes(random));
    const auto groups = process_groups(grid);
    for (int32_t rank = 0; rank < grid.sizes().world; ++rank) {
      const RankCoordinates at = grid.coordinates(rank);
      const auto stands = [&](GroupKind kind, int64_t place) {
        const ProcessGroup* group = group_with(groups, kind, rank);
        return group && group->ranks.at(place) == rank;
      };
      CHECK(stands(GroupKind::tp, at.tp));
      CHECK(stands(GroupKind::cp, at.cp));
      CHECK(stands(GroupKind::dp, at.dp));
      CHECK(stands(GroupKind::pp, at.pp));
      CHECK(stands(GroupKind::dp_cp, at.dp_cp));
      CHECK(stands(GroupKind::etp, at.etp));
      CHECK(stands(GroupKind::ep, at.ep));
      CHECK(stands(GroupKind::edp, at.edp));
      CHECK((group_with(groups, GroupKind::embedding, rank) != nullptr) == at.word_embedding);
      CHECK((group_with(groups, GroupKind::position_embedding, rank) != nullptr) == at.position_embedding);
    }
  }
}

TEST_CASE("a refused layout gets the rule, the numbers and what would fit") {
  const auto make = [](ParallelSizes sizes) { ParallelGrid{sizes}; };
  CHECK_THROWS_WITH_AS(make({.world = 4, .tensor = 3}),
                       "data parallel size must be whole: world size 4 is not divisible by tensor x pipeline x context "
                       "parallel = 3 x 1 x 1 = 3; the nearest worlds are 3 and 6",
                       Error);
  CHECK_THROWS_WITH_AS(make({.world = 8, .tensor = 2, .expert = 8}),
                       "expert data parallel size must be whole: world size 8 is not divisible by expert tensor x "
                       "expert x pipeline parallel = 2 x 8 x 1 = 16; the nearest worlds are 16",
                       Error);
  CHECK_THROWS_WITH_AS(make({.world = 8, .tensor = int64_t{1} << 40, .pipeline = 1 << 20}),
                       doctest::Contains("take smaller sizes"), Error);
  CHECK_THROWS_WITH_AS(make({.world = 8, .context = 0}), doctest::Contains("every one must be at least 1"), Error);
  CHECK_THROWS_WITH_AS(make({.world = 8, .virtual_pipeline = 2}),
                       "virtual pipeline size 2 wants a pipeline parallel size above 1, got 1; leave it out or use 2 "
                       "stages",
                       Error);
  CHECK_THROWS_WITH_AS(make({.world = 8, .pipeline = 2, .virtual_pipeline = 0}),
                       "virtual pipeline size is 0, want at least 1", Error);
  CHECK_THROWS_WITH_AS(
      make({.world = 16, .tensor = 2, .pipeline = 2, .context = 2, .order = "tp-cp-pp-ep-dp"}),
      doctest::Contains("does not end with pp, so data parallel size 2 and expert data parallel size 4 must be equal"),
      Error);
  CHECK_THROWS_WITH_AS(
      make({.world = 8, .tensor = 2, .pipeline = 2, .expert = 2, .expert_tensor = 1, .order = "tp-cp-pp-ep-dp"}),
      doctest::Contains("different pipeline groups, [0, 2] [1, 3] [4, 6] [5, 7] and [0, 1]"), Error);
  CHECK_THROWS_WITH_AS(make({.world = 8, .optimizer_instances = 3}),
                       "optimizer instances 3 must divide data x context parallel 8 and expert data parallel 8", Error);
  CHECK_THROWS_WITH_AS(make({.world = 8, .context = 4, .hierarchical_context = {2, 3}}),
                       "hierarchical context parallel sizes [2, 3] must multiply to the context parallel size 4",
                       Error);
}
