// The processes below one.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace hexad::process {

// Kills every process below `root`, whatever group or session it made: all are stopped first, so that none forks away.
// `spared`, a process without children, is left alone, and `root` itself too. Returns how many there were; those that
// have ended and are not waited for yet count. None where /proc is not there, or of another pid namespace.
size_t kill_below(pid_t root, pid_t spared);

}  // namespace hexad::process
