// All that is said of a configuration before anything starts: what `hexad config check` prints is what `train` and
// `eval` are refused for.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/plan/room.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/config/check.hpp"

namespace hexad::cli {

// Of the start that is judged.
struct Start {
  // False where the run may be on another machine: what is not on this one and may be on that (data sets, models of the
  // Hub, GPUs) is a notice then, and the text is the same.
  bool is_here = true;
  bool trains = true;                // false: the model is evaluated
  bool launched = false;             // a launcher has started a process for each rank
  bool in_process = false;           // one rank, whatever the configuration says
  std::optional<bool> resumes = {};  // in place of checkpointing.resume_if_exists
};

struct Checked {
  std::vector<config::Problem> problems;                     // errors first
  int exit_code = 0;                                         // 0: no error; 3: all errors are of plugins' files; else 2
  std::shared_ptr<const algorithm::ModelOnDisk> model = {};  // where it was found and read
  plan::Room room = {};                                      // of a run that trains: what a rank has
};

// What config::check says of the configuration; where it finds no error, all that a run would refuse before it starts,
// as far as that can be known without starting anything. Of data the rows are read that a run looks at before its first
// step. Whether the run's folders could be made is asked: nothing is made, and no lock is taken. What the cache keeps
// of data files (lib/table/cache.hpp) stays, and the run finds it again.
Checked check_all(const config::Loaded& loaded, const Start& start);

// A configuration that nothing was found against, and what was read on the way.
struct Ready {
  config::Resolved resolved;
  std::shared_ptr<const algorithm::ModelOnDisk> model;
  plan::Room room;  // as Checked's
};

// Loads and checks. Throws one Error that lists every error, a line each, with the exit code of Checked.
Ready require_ready(const std::filesystem::path& path, const std::vector<std::string>& overrides, const Start& start);

}  // namespace hexad::cli
