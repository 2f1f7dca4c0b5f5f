// Starts a program below a leader of its own, which keeps everything that the program leaves behind within reach.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace hexad::environment {

// The leader is a small shell in a process group of its own, and the subreaper of all below it: a process whose parent
// ended becomes its child and is waited for, whatever group or session it made. It writes two lines to `life`: the
// number of the watcher, a child of its own, and, when the program has ended, its exit status as shells count it (128 +
// signal). It stays until it is killed, so that what the program left is below it still. The watcher waits for the end
// of `life`, also by our own death, and then kills all below the leader, and the leader's group.
struct StartedProgram {
  pid_t leader = -1;
  int input = -1, output = -1, notes = -1, life = -1;  // our ends, which do not block; notes: its standard error
};

// Any thread. `command`: the program first, found on PATH. Throws ProgramFailed.
StartedProgram start_program(const std::vector<std::string>& command);

}  // namespace hexad::environment
