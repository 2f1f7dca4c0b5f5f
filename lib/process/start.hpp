// Starts a program, or a function, in a process of its own.
#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/process/limit.hpp"
#include "lib/process/sandbox.hpp"

namespace hexad::process {

// A descriptor of ours, and the number that it has in the child. Both may be any, in any order.
struct Handed {
  int ours, there;
};

// What a child does not simply inherit. Every child also leads a process group of its own: Ctrl-C on the terminal does
// not reach it, and what it starts can be killed with it.
struct Setup {
  std::vector<Handed> descriptors = {};
  std::vector<Limit> limits = {};
  // The kernel kills it (SIGKILL) when the *thread* that has started it ends: let one start it that stays.
  bool dies_with_us = false;
  // Processes below it whose parent ends become its children (PR_SET_CHILD_SUBREAPER).
  bool adopts_orphans = false;
  // It begins as after ignore_job_signals().
  bool ignores_job_signals = false;
  // Variables of our environment that it is not given.
  std::vector<std::string> withheld = {};
  // What is kept from it, and from all that it starts.
  std::optional<Sandbox> sandbox = {};
};

// From now on this process ignores the signals by which people and schedulers end a job or warn it: INT, TERM, HUP,
// USR1, USR2, XCPU. Terminals, Slurm and systemd send them to every process of a job; the one that leads it acts on
// them. XFSZ too: whoever writes is told by an error.
void ignore_job_signals();

struct Command {
  std::vector<std::string> arguments;                 // the program first, by its absolute path
  std::map<std::string, std::string> variables = {};  // set beside our environment
  Setup setup = {};
};

// Starts the program and returns its process id, which the caller waits for. Any thread, at any time: nothing of this
// process is copied, and the thread waits until the program runs. Standard input, output and error are ours where
// `descriptors` do not say otherwise; no other descriptor gets there. Signals are unblocked, and none is handled or
// ignored, but those of a job where `setup` says so. Throws std::system_error ("cannot start PROGRAM"), also if the
// program cannot be executed.
pid_t start(const Command& command);

// Runs `body` in a copy of this process and returns its process id; what `body` returns is the exit status there.
// Contract: no other thread exists, for locks that one holds at this moment are never released in the copy. The copy
// keeps our descriptors, signal handlers and mask; streams are flushed first, so that nothing is written twice. An
// exception out of `body` is SIGABRT. Throws std::system_error ("cannot fork").
pid_t fork_here(const Setup& setup, const std::function<int()>& body);

}  // namespace hexad::process
