// Room on a GPU for what a call may keep beside what it needs.
#pragma once
#include <cstdint>

#include "modeling/backend/memory/meter.hpp"

namespace hexad::modeling {

// Bytes that a call of several micro-batches has used beside what stays between them.
struct CallUse {
  // Of its first micro-batch (of a pipeline: of those that it holds at once): at the peak, and what it left behind,
  // gradients above all. Later ones have that from their beginning, and may use as much beside it.
  int64_t first_peak = 0, first_left = 0, first_tokens = 0;
  // At the peak of all, and the longest of the later ones (below 0: there were none). What stays may have grown during
  // the first one: of later ones alone is this peak a bound.
  int64_t peak = 0, later_tokens = -1;
  bool stayed = false;  // something did from the beginning: then the peak of the first one tells nothing
};

// What calls of a kind use at their peak, of the one that used most.
class MemoryNeed {
 public:
  bool known() const { return known_; }        // a call has ended
  bool measured() const { return measured_; }  // and one of them did not fail
  // `used` bytes, in a call whose longest micro-batch had so many tokens.
  void learn(int64_t used, int64_t most_tokens);
  void learn(const CallUse& call);
  // A call that failed may not have come to its peak.
  void fail() { known_ = true; }
  double of(int64_t most_tokens) const;  // more tokens use more in proportion; fewer may not use less

 private:
  bool known_ = false, measured_ = false;
  int64_t tokens_ = 1, bytes_ = 0;
};

// Bytes of a GPU that are free or held without use, less a margin: libraries' own memory, and what the allocator cannot
// use for lack of a whole piece.
double unused_bytes(const MemoryMeter& meter, at::Device device);

}  // namespace hexad::modeling
