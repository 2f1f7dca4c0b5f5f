// Counter-based random numbers: the n-th number of a stream is a pure function of (seed, stream, n), so that nothing
// but those three has to be saved to repeat it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hexad {

// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), 64 bits at a time.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // The number at a position of the stream.
  uint64_t at(uint64_t position) const;
  // The next number; starts at position 0.
  uint64_t next() { return at(position_++); }
  // Uniform in [0, bound), without bias; bound > 0.
  uint64_t below(uint64_t bound);

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t position_ = 0;
};

// A uniformly random order of 0..count-1 (Fisher-Yates).
std::vector<int64_t> random_permutation(int64_t count, uint64_t seed, uint64_t stream);

// So many characters of a-z and 0-9 by the system's random numbers: a name that nobody else takes.
std::string random_name(size_t length);

}  // namespace hexad
