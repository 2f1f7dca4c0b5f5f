#include "lib/base/random.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>

namespace hexad {

uint64_t CounterRandom::at(uint64_t position) const {
  uint32_t counter[4] = {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                         static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)};
  uint32_t key[2] = {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    const uint32_t next[4] = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
                              static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    std::copy(next, next + 4, counter);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return uint64_t{counter[0]} | uint64_t{counter[1]} << 32;
}

uint64_t CounterRandom::below(uint64_t bound) {
  uint64_t number = next();
  if (number >= bound) return number % bound;
  // Numbers under `threshold`, which is below `bound`, would make the small remainders likelier.
  const uint64_t threshold = (0 - bound) % bound;
  while (number < threshold) number = next();
  return number % bound;
}

std::vector<int64_t> random_permutation(int64_t count, uint64_t seed, uint64_t stream) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  CounterRandom random(seed, stream);
  constexpr int64_t kAhead = 64;  // swaps whose places are drawn at once, so that memory is fetched meanwhile
  std::array<uint64_t, kAhead> places;
  for (int64_t last = count - 1; last > 0; last -= kAhead) {
    const int64_t swaps = std::min(last, kAhead);
    for (int64_t k = 0; k < swaps; ++k) {
      places[k] = random.below(last - k + 1);
      __builtin_prefetch(&order[places[k]], 1);
    }
    for (int64_t k = 0; k < swaps; ++k) std::swap(order[last - k], order[places[k]]);
  }
  return order;
}

std::string random_name(size_t length) {
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device system;
  std::uniform_int_distribution<size_t> place(0, kCharacters.size() - 1);
  std::string name;
  while (name.size() < length) name += kCharacters[place(system)];
  return name;
}

}  // namespace hexad
