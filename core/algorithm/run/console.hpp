// What a run tells whoever watches it while it goes on.
#pragma once
#include <string>
#include <vector>

#include "core/cluster/placement.hpp"
#include "core/cluster/protocol/protocol.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/telemetry/run_log.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// What a run works on, when its workers have started. Borrowed.
struct Started {
  const config::RunConfig& config;
  const yaml::Node& resolved;  // the configuration with its defaults
  const cluster::Placement& placement;
  const std::vector<cluster::protocol::Start::Reply>& ranks;  // of all of them
  std::string log_dir;
  int64_t rows = 0, validation_rows = 0;  // prompts, conversations or pairs
};

// This one tells nobody. Called on the run's thread, in the order in which things happen.
class Console {
 public:
  virtual ~Console() = default;

  // A line for people: a notice, what was saved, what went wrong.
  virtual void line(const std::string&) {}
  virtual void started(const Started&) {}
  // A step begins; steps count from 1.
  virtual void begin(int64_t /*step*/, int64_t /*last_step*/) {}
  // A phase begins, under the names of the step's timings ("generation", "policy_training", "validation").
  virtual void phase(const std::string&) {}
  // How far a rank has come in it.
  virtual void progress(int /*rank*/, const cluster::protocol::Progress&) {}
  // What validation found after a step, 0: before the first. `prefix`: of its metrics in the log.
  virtual void validated(int64_t /*after*/, const std::string& /*prefix*/, const Metrics&) {}
  // A step has ended: its metrics, its seconds by phase, its rates (telemetry/performance.hpp).
  virtual void step(int64_t /*step*/, const Metrics& /*train*/, const Metrics& /*timing*/, const Metrics& /*rates*/) {}
};

}  // namespace hexad::algorithm
