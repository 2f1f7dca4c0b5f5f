// Where tokens may go: as routers send them, and as they should not.
#pragma once
#include <string>
#include <vector>

#include <ATen/Functions.h>

namespace hexad::modeling {

struct NamedRouting {
  std::string name;
  at::Tensor experts;  // int64 [T, k] on the CPU
  int64_t num_experts;
};

inline std::vector<NamedRouting> routings() {
  const auto random = [](int64_t tokens, int64_t topk, int64_t reach) {
    return std::get<1>(at::rand({tokens, reach}).topk(topk, 1)).contiguous();
  };
  const auto same = [](int64_t tokens, int64_t expert) { return at::full({tokens, 1}, expert, at::kLong); };
  return {
      {"random", random(61, 3, 7), 7},
      {"the last experts get nothing", random(40, 2, 4), 9},
      {"the first experts get nothing", random(40, 2, 4) + 5, 9},
      {"all to one expert", same(50, 3), 5},
      {"all to the first", same(33, 0), 5},
      {"all to the last", same(33, 4), 5},
      {"one token", random(1, 2, 6), 6},
      {"more experts than tokens", random(3, 2, 40), 40},
      {"every expert", random(20, 8, 8), 8},
      {"one expert", same(17, 0), 1},
      {"no token", at::empty({0, 2}, at::kLong), 4},
      {"pairs of many runs", random(1500, 8, 128), 128},  // the kernel counts 256 pairs at a time
      {"as many pairs as a run", random(32, 8, 20), 20},
      {"one pair more than a run", random(257, 1, 20), 20},
  };
}

}  // namespace hexad::modeling
