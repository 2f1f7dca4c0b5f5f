// What every algorithm's run works on. Borrowed; train_run.cpp makes the parts.
#pragma once
#include "core/algorithm/run/console.hpp"
#include "core/algorithm/run/interruption.hpp"
#include "core/algorithm/schedule/schedule.hpp"
#include "core/checkpoint/store.hpp"
#include "core/cluster/placement.hpp"
#include "core/cluster/policy.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/rollout/model_text.hpp"
#include "core/telemetry/run_log.hpp"
#include "lib/base/timer.hpp"

namespace hexad::algorithm {

struct Training {
  const config::RunConfig& config;
  const std::string& resolved_config;  // YAML text, for checkpoints
  const nlohmann::ordered_json& identity;
  cluster::Policy& policy;
  const rollout::ModelText& text;
  Schedule& schedule;
  checkpoint::Store* checkpoints;  // null: checkpointing.enabled is false
  telemetry::RunLog& log;
  Console& console;
  Interruption& interruption;
  const Stopwatch& since_launch;  // of the program
  cluster::Placement placement;
  checkpoint::TrainingInfo progress = {};  // where the run stands; restored by resume
};

enum class Ending { finished, interrupted, stopped_early };

}  // namespace hexad::algorithm
