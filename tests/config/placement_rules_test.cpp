// Where generation runs, and what asynchronous GRPO asks for: messages, and a valid neighbour of each.
#include "core/config/typed/run_config.hpp"
#include "tests/config/support.hpp"

using namespace config_test;

namespace {

const std::string kApart = "++policy.generation.colocated.enabled=false";
const std::string kDevices = "++policy.generation.colocated.resources.gpus_per_node=";
const std::string kNodes = "++policy.generation.colocated.resources.num_nodes=";
const std::string kRanks = "++cluster.gpus_per_node=", kCluster = "++cluster.num_nodes=";
const std::string kAsync = "++grpo.async_grpo.enabled=true",
                  kCorrection = "++loss_fn.use_importance_sampling_correction=true";

int64_t apart(const Overrides& overrides) {
  return hexad::config::generation_ranks(hexad::config::run_config(resolve_text(overrides)));
}

}  // namespace

TEST_CASE("on one node gpus_per_node says how many ranks generate") {
  CHECK(apart({kRanks + "4"}) == 0);
  CHECK(apart({kRanks + "4", kDevices + "2"}) == 0);  // colocated: not read
  CHECK(apart({kRanks + "4", kApart, kDevices + "2"}) == 2);
  CHECK(apart({kRanks + "5", kApart, kDevices + "1", kNodes + "1"}) == 1);
  check_says(resolve_error({kRanks + "4", kApart}),
             "policy.generation.colocated.resources.gpus_per_node: is missing: with "
             "policy.generation.colocated.enabled: false say how many of the 4 ranks (cluster.gpus_per_node) generate; "
             "nearest: 1");
  check_says(resolve_error({kRanks + "4", kApart, kDevices + "4"}),
             "policy.generation.colocated.resources.gpus_per_node: got 4, and of the 4 ranks of cluster.gpus_per_node "
             "at least one must be left to train; nearest: 3");
  check_says(resolve_error({kApart, kDevices + "1"}), "set cluster.gpus_per_node to at least 2");
  check_says(resolve_error({kRanks + "4", kApart, kDevices + "1", kNodes + "2"}),
             "policy.generation.colocated.resources.num_nodes: got 2, wanted null or 1");
}

TEST_CASE("of several nodes whole ones generate") {
  const Overrides three = {kRanks + "8", kCluster + "3", kApart};
  const auto with = [&](const Overrides& more) {
    Overrides all = three;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  CHECK(apart(with({kNodes + "1", "++policy.train_global_batch_size=512"})) == 8);
  CHECK(apart(with({kNodes + "2", kDevices + "8"})) == 16);
  check_says(resolve_error(three), "policy.generation.colocated.resources.num_nodes: is missing");
  check_says(resolve_error(with({kNodes + "3"})), "at least one must be left to train; nearest: 2");
  check_says(resolve_error(with({kNodes + "1", kDevices + "4"})), "got 4, wanted whole nodes of a cluster of 3");
}

TEST_CASE("layouts are those of the ranks that train") {
  const Overrides run = {kRanks + "6", kApart, kDevices + "2", "++policy.dtensor_cfg.tensor_parallel_size=4"};
  CHECK(resolve_error(run) == "");
  check_says(resolve_error({kRanks + "6", "++policy.dtensor_cfg.tensor_parallel_size=4"}),
             "does not divide the 6 ranks");
  check_says(resolve_error({kRanks + "8", kApart, kDevices + "2", "++policy.dtensor_cfg.tensor_parallel_size=4"}),
             "does not divide the 6 ranks");
  const std::string replicas = "++policy.generation.native_cfg.tensor_parallel_size=";
  CHECK(resolve_error({kRanks + "5", kApart, kDevices + "4", replicas + "2"}) == "");
  check_says(resolve_error({kRanks + "5", kApart, kDevices + "3", replicas + "2"}),
             "tensor_parallel_size 2 does not divide the 3 ranks that generate; nearest: 1 or 3");
}

TEST_CASE("asynchronous GRPO needs ranks that generate and the correction for their samples") {
  const Overrides run = {kRanks + "2", kApart, kDevices + "1", kCorrection, kAsync};
  CHECK(resolve_error(run) == "");
  check_says(resolve_error({kRanks + "2", kCorrection, kAsync}),
             "grpo.async_grpo.enabled: needs generation on ranks of its own, which work while others train: set "
             "policy.generation.colocated.enabled to false");
  check_says(resolve_error({kRanks + "2", kApart, kDevices + "1", kAsync}),
             "grpo.async_grpo.enabled: needs loss_fn.use_importance_sampling_correction: true, for samples come from "
             "weights of earlier steps");
  const auto config = hexad::config::run_config(resolve_text(run));
  CHECK(config.grpo.async_grpo.enabled);
  CHECK(config.grpo.async_grpo.max_trajectory_age_steps == 1);
  CHECK(has_notice(resolve_text({"++grpo.async_grpo.in_flight_weight_updates=true"}),
                   "grpo.async_grpo.in_flight_weight_updates", "no effect"));
}
