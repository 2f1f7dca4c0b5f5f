// Bytes that go from this process, rank 0 of a group, into all others of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hexad::refit {

// Why not to wait any longer; "": wait. Asked again and again while something is waited for.
using GiveUp = std::function<std::string()>;

// Every wait throws sdk::Error when it is given up, or when the others are lost. What failed once is of no use
// afterwards.
class Sender {
 public:
  virtual ~Sender() = default;

  // Enqueues; the memory, an address of the host or of the sender's GPU, must stay until wait().
  virtual void broadcast(uintptr_t data, size_t bytes, const GiveUp& give_up) = 0;
  virtual void wait(const GiveUp& give_up) = 0;
};

}  // namespace hexad::refit
