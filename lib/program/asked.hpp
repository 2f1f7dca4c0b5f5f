// One running copy of a program that answers lines with lines: started, asked, watched and ended with all its children.
#pragma once
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lib/process/tree.hpp"
#include "lib/program/notes.hpp"

namespace hexad::program {

using Clock = std::chrono::steady_clock;

struct Start {
  std::string name;                  // what the shell that runs it calls itself
  std::vector<std::string> command;  // the program first, found on PATH
  std::optional<process::Sandbox> sandbox = {};
  std::string refusal_hint = {};  // said where its standard error speaks of what a sandbox keeps from it
};

// It ended, hangs or answers something else than a line: it has to be started again.
struct ProgramFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// `stop` was set while it was asked.
struct ProgramStopped : std::runtime_error {
  ProgramStopped() : std::runtime_error("stopped") {}
};

// The program ends with all its descendants, whatever groups and sessions they made, and when this process ends,
// however it ends, within the limits of process::Tree. One thread at a time.
class Program {
 public:
  // `who` and `log_lines`: of Notes. Throws ProgramFailed if it cannot be started at all; a program that is not there
  // ends with a line on its standard error.
  Program(const Start& start, std::string who, std::atomic<int64_t>& log_lines);
  ~Program();  // closes its standard input, gives it a moment, kills all of it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sends the line and returns the one line that it answers, without its end. The thread has SIGPIPE blocked. Throws
  // ProgramFailed or ProgramStopped.
  std::string ask(std::string_view line, Clock::time_point deadline, const std::atomic<bool>& stop);

  // How it ended, if it did; empty: it can be asked. Throws ProgramFailed.
  std::string why_gone();

  bool fresh() const { return !answered_; }
  // No more questions: a program that reads its input to the end ends now.
  void close_input();

 private:
  bool write_some(std::string_view& rest);
  bool read_answer();
  std::string with_notes(const std::string& what) const;
  std::string how_it_ended();

  std::string refusal_hint_;            // empty: it has no sandbox
  process::Descriptor input_, output_;  // our ends, which do not block
  Notes notes_;
  std::optional<process::Tree> tree_;
  std::string answer_;                       // bytes of its standard output that have come
  bool answered_ = false, healthy_ = false;  // ever; the last time
};

}  // namespace hexad::program
