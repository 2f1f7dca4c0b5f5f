// Group Relative Policy Optimization (Shao et al. 2024, DeepSeekMath): the loop, and what it works on.
#pragma once
#include <atomic>

#include "core/algorithm/schedule.hpp"
#include "core/checkpoint/store.hpp"
#include "core/cluster/policy.hpp"
#include "core/config/run_config.hpp"
#include "core/rollout/prompts.hpp"
#include "core/rollout/rollout.hpp"
#include "core/telemetry/console.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::algorithm {

// The parts of a GRPO run. Borrowed; grpo_setup.cpp makes them.
struct Grpo {
  const config::RunConfig& config;
  const std::string& resolved_config;  // YAML text, for checkpoints
  const nlohmann::ordered_json& identity;
  cluster::Policy& policy;
  rollout::Generation& generation;
  rollout::Prompts& prompts;
  const rollout::Environments& environments;
  const rollout::ModelText& text;
  rollout::Sampling sampling;
  Schedule& schedule;
  checkpoint::Store* checkpoints;  // null: checkpointing.enabled is false
  telemetry::RunLog& log;
  telemetry::Console& console;
  const std::atomic<int>& interrupted;  // > 0: save and stop after this step
  cluster::Placement placement;
  checkpoint::TrainingInfo progress;  // where the run stands; restored by resume
};

enum class Ending { finished, interrupted, stopped_early };

// Trains until max_num_steps, the end of the data, an early stop or an interruption. Throws Error.
Ending grpo_train(Grpo& run);

}  // namespace hexad::algorithm
