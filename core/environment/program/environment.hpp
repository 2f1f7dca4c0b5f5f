// An environment whose rewards a program gives, in any language: `env.<name>.command`; or a function of a Python file:
// `env.<name>.python`, which a script of ours calls (sdk/python/reward_file.py).
#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/environment/environment.hpp"
#include "lib/process/sandbox.hpp"

namespace hexad::environment {

struct ProgramSettings {
  std::string path;                       // "env.<name>"
  std::string shown = {};                 // the command, for messages
  std::vector<std::string> command = {};  // program first
  std::vector<std::string> named = {};    // of python: the interpreter and the file, which its sandbox lets it read
  int64_t num_workers = 0, retries = 0, batch_size = 0;  // of lists; 0: whole groups, dealt to all copies
  int64_t num_steps = 0;                                 // of the run; 0: not known
  double timeout_s = 0, startup_timeout_s = 0, deadline_s = 0;
  std::vector<std::string> components = {};
  std::optional<process::Sandbox> sandbox = {};
};

// Of the keys below. Throws Error(config).
ProgramSettings program_settings(const std::string& name, const nlohmann::ordered_json& section, int64_t num_steps = 0);

// Keys of `section` (env.<name>):
//   command            a list (program and arguments, found on PATH) or one text for /bin/sh
//   python             in its place FILE or FILE:FUNCTION; with interpreter (python3) and conversational (false)
//   num_workers        4: copies of the program; each has one request at a time
//   timeout_s          60: for a sample; a list has as much for each of its samples, up to half of deadline_s
//   startup_timeout_s  60: more for the first answer of a copy
//   deadline_s         for a call of score(), with all attempts and starts: 10 * timeout_s + startup_timeout_s
//   retries            1: further attempts for a sample; each by a copy that was started anew
//   batch_size         1: above it lists of so many samples of one step are asked and answered; python: whole groups
//   components         names of the parts of the reward that every answer has
//   sandbox            default: process::Sandbox, which may write the working folder and TMPDIR; strict; none
//   pass_env           variables that the program is given though they look like secrets
// A sample that has no answer after its retries, or at the deadline, is invalid, and a copy that is still asked then is
// started anew. When 2 * num_workers (at least 8) failed and none succeeded, the others of the call are not tried.
// Starts the program. `interrupted` > 0: what has no answer a few seconds later is given up (Interrupted). Throws
// Error(config) for wrong keys and for a program that is not there; score() for one that has never answered.
std::unique_ptr<Environment> make_program_environment(const std::string& name, const nlohmann::ordered_json& section,
                                                      const std::atomic<int>* interrupted, int64_t num_steps);

}  // namespace hexad::environment
