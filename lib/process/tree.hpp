// A program with all that it starts, whatever groups and sessions that makes: it ends as one.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/process/child.hpp"
#include "lib/process/private_folder.hpp"
#include "lib/process/start.hpp"

namespace hexad::process {

// The program runs below a leader of its own, which keeps everything that the program leaves behind within reach: a
// small shell in a process group of its own, and the subreaper of all below it. A process whose parent ended becomes
// the leader's child and is waited for. The leader writes two lines to `life`: the number of the watcher, a child of
// its own, and, when the program has ended, its exit status as shells count it (128 + signal). It stays until it is
// killed, so that what the program left is below it still. The watcher waits for the end of `life`, also by our own
// death, and then kills all below the leader, and the leader's group.
//
// Where /proc is not that of our pid namespace, and where somebody killed the leader, only those in the leader's group
// end. One thread at a time.
//
// With a sandbox all of it is inside. A strict one has a folder of its own as TMPDIR, which is removed at the end.
class Tree {
 public:
  // `command`: the program first, found on PATH. `name`: what the shell calls itself where it speaks, as of a program
  // that is not there, which ends with 127. Input, output, error: descriptors of ours that the program is given;
  // `withheld`: of Setup. Any thread. Throws std::system_error.
  Tree(const std::string& name, const std::vector<std::string>& command, int input, int output, int error,
       const std::optional<Sandbox>& sandbox = {}, const std::vector<std::string>& withheld = {});
  ~Tree();  // kills all of it, and waits until it is gone
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Readable when `ended` has something to learn.
  int life() const { return life_.get(); }
  // How the program ended, by what the leader says, or by the leader's own end; nothing while it runs. A status above
  // 128 counts as a signal.
  std::optional<Exit> ended();

 private:
  std::optional<PrivateFolder> folder_;
  Descriptor life_;
  Child leader_;
  pid_t watcher_ = -1;  // the leader's child that is killed last
  std::string told_;    // by the leader
  std::optional<Exit> exit_;
};

}  // namespace hexad::process
