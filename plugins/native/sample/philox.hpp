// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random numbers as a function
// of a key and a counter, so that a draw does not depend on any draw before it or on what else is in the batch.
#pragma once
#include <array>
#include <cstdint>

namespace hexad::native {

inline std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * counter[0], b = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return counter;
}

// Uniform in [0, 1), 53 bits, for the token at `position` of the sequence of a request with `seed`.
inline double uniform(uint64_t seed, uint64_t position) {
  const auto words = philox(seed, {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0});
  const uint64_t bits = (static_cast<uint64_t>(words[0]) << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

}  // namespace hexad::native
