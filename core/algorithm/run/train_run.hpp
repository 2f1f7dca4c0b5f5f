// From a resolved configuration to a finished run: makes the parts, resumes, trains, reports.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "core/cluster/process/launch.hpp"
#include "core/cluster/process/spawner.hpp"
#include "core/config/check.hpp"
#include "core/manifest/options.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::algorithm {

struct TrainOptions {
  std::string program = {};                    // absolute path of this executable: workers are started from it
  cluster::Spawner* spawner = nullptr;         // null: one worker on a thread of this process
  std::optional<cluster::Launch> launch = {};  // this is the first process of a launcher; the others are its workers
  // Makes the page of a run that has ended, from the files in its directory; may throw Error. Empty: there is no page.
  std::function<void(const std::filesystem::path& run_dir)> report = {};
};

// What a run leaves behind, for the caller to print.
struct TrainOutcome {
  std::string run_dir;
  int64_t steps = 0;
  bool interrupted = false;
  bool saved = false;  // checkpointing is enabled, and there was a step to save
};

// Runs the algorithm of the configuration. `interrupted` > 0 ends it after the running step, with a checkpoint; a step
// whose rewards are not there a few seconds later is given up. Throws Error.
TrainOutcome train(const config::Resolved& resolved, const TrainOptions& options, const std::atomic<int>& interrupted);

// What the block `plugins` says; and where a key of the configuration was written, for messages of plugins.
plugin::Options plugin_options(const yaml::Node& root);
plugin::Locate locator(const yaml::Node& root);  // borrows the root

}  // namespace hexad::algorithm
