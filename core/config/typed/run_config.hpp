// A resolved configuration as plain structs: what the algorithm loop and the parts around it read.
#pragma once
#include "core/config/algorithm.hpp"
#include "core/config/typed/algorithm_config.hpp"
#include "core/config/typed/data_config.hpp"
#include "lib/yaml/node.hpp"
#include "core/config/typed/policy_config.hpp"
#include "core/config/typed/run_facts.hpp"
#include "core/config/typed/system_config.hpp"

namespace hexad::config {

struct RunConfig {
  Algorithm algorithm = Algorithm::grpo;
  GrpoConfig grpo;
  RewardPenaltiesConfig reward_penalties;
  CompatConfig compat;
  SupervisedConfig supervised;  // of sft, dpo or rm
  LossConfig loss_fn;
  CheckpointingConfig checkpointing;
  PolicyConfig policy;
  DataConfig data;
  EnvConfig env;
  EvalConfig eval;
  LoggerConfig logger;
  ClusterConfig cluster;
  RunFacts facts;
};

// The last ranks of the run that only generate; 0: generation is colocated, or there is none.
int64_t generation_ranks(const RunConfig& run);

// max_num_steps of the algorithm's block; -1: as many as the epochs hold.
int64_t max_num_steps(const RunConfig& run);

// Of a configuration that is resolved, or only loaded. Throws Error(config) where a key is missing or has another type.
RunConfig run_config(const yaml::Node& root, const RunFacts& facts);
template <typename Configuration>  // Resolved or Loaded (core/config/check.hpp)
RunConfig run_config(const Configuration& configuration) {
  return run_config(configuration.root, configuration.facts);
}

}  // namespace hexad::config
