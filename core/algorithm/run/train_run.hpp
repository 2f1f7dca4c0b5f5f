// From a resolved configuration to a finished run: makes the parts, resumes, trains, reports.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/algorithm/run/console.hpp"
#include "core/algorithm/run/interruption.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/checkpoint/store.hpp"
#include "core/cluster/process/launch.hpp"
#include "core/cluster/process/spawner.hpp"
#include "core/config/check.hpp"
#include "core/data/dataset/loader.hpp"
#include "core/manifest/options.hpp"
#include "core/plugin/plugin_config.hpp"
#include "lib/base/timer.hpp"

namespace hexad::algorithm {

struct TrainOptions {
  std::string program = {};                    // absolute path of this executable: workers are started from it
  cluster::Spawner* spawner = nullptr;         // null: one worker on a thread of this process
  std::optional<cluster::Launch> launch = {};  // this is the first process of a launcher; the others are its workers
  Console* console = nullptr;                  // who watches; null: nobody
  // Makes the page of a run that has ended, from the files in its directory; may throw Error. Empty: there is no page.
  std::function<void(const std::filesystem::path& run_dir)> report = {};
  std::optional<bool> resumes = {};               // in place of checkpointing.resume_if_exists
  std::shared_ptr<const ModelOnDisk> model = {};  // that of the configuration, where the caller has read it already
  Stopwatch since_launch = {};  // of the program: checkpointing.checkpoint_must_save_by counts from there
};

// What a run leaves behind, for the caller to print.
struct TrainOutcome {
  std::string run_dir = {};
  int64_t steps = 0;
  bool interrupted = false;
  bool saved = false;          // checkpointing is enabled, and there was a step to save
  bool is_taken_back = false;  // it was interrupted before its first step: nothing is left of it
};

// Runs the algorithm of the configuration. An interruption ends it with its last finished step, which is saved: a step
// that trains is finished, one that generates or validates is not waited for, and rewards are for a few seconds. Before
// the first step all that the run has made is taken back, and so it is where an Error of configuration, model or data
// ends a run that has logged nothing. Throws Error.
TrainOutcome train(const config::Resolved& resolved, const TrainOptions& options, Interruption& interruption);

// Where the data of a checkpoint stand. Throws Error(data) if it does not say so.
data::LoaderState position_of(const checkpoint::Store::Found& found);

// What the block `plugins` says; and where a key of the configuration was written, for messages of plugins.
plugin::Options plugin_options(const yaml::Node& root);
plugin::Locate locator(const yaml::Node& root);  // borrows the root

}  // namespace hexad::algorithm
