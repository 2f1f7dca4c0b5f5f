// What rank 0 tells the other ranks of a replica before each pass, and the numbers by which ranks tell whether they
// have the same: a digest differs where anything in it does, but for chance.
#pragma once
#include <cstdint>
#include <vector>

#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

// A request that joins, and its digest_of().
struct Arrival {
  uint64_t id = 0, digest = 0;
};

struct Turn {
  bool apart = false;               // no pass: what the hosts of all ranks have asked for comes now
  bool asks = false;                // Lockstep::any() comes next
  uint64_t digest = 0;              // of all requests before, and of what became of them so far
  std::vector<Arrival> arrived;     // in order
  std::vector<uint64_t> cancelled;  // ids of requests, in order
};

inline uint64_t mixed(uint64_t digest, uint64_t value) { return (digest ^ value) * 0x9E3779B97F4A7C15u; }

// Of all that decides what is drawn for a request, with whom it shares a prompt, and when it ends.
uint64_t digest_of(const Request& request);

}  // namespace hexad::native
