// Threads that write to programs.
#pragma once
#include <csignal>

namespace hexad::program {

// For the thread that calls it: a program that is gone must not end this process; the write says EPIPE.
inline void block_sigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace hexad::program
