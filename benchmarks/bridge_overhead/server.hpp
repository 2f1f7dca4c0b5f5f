// A server that speaks as much of vLLM's HTTP as generation needs, in a process of its own: one thread, no model, and
// tokens that leave at times which are set beforehand, so that what it costs is known and small.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace hexad::bridge_overhead {

// Shared with the server's process; all of it may be set while no request runs.
struct Board {
  std::atomic<int64_t> pace_us{0};   // between the tokens of a request; 0: the whole answer is sent at once
  std::atomic<int64_t> together{0};  // clocks start when so many requests are running
  std::atomic<int64_t> requests{0}, running{0}, most_running{0};
  std::atomic<int64_t> body_bytes{0};   // sent
  std::atomic<int64_t> late_ns{0};      // sum over requests: end of the answer after the time that was set for it
  std::atomic<int64_t> together_ns{0};  // CLOCK_MONOTONIC when `together` were there
  void reset(int64_t pace, int64_t all) {
    pace_us = pace, together = all;
    requests = running = most_running = body_bytes = late_ns = together_ns = 0;
  }
};

// Ends with this object, or with this process.
class Server {
 public:
  // Forks: no thread may run yet. Throws std::runtime_error.
  Server();
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  Board& board() { return *board_; }
  double cpu_seconds() const;

 private:
  Board* board_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace hexad::bridge_overhead
