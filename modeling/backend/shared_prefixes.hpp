// The tokens of a micro-batch without those that are computed twice: what a token is in the model depends on the tokens
// before it alone, so sequences that begin alike, as the samples of a prompt do, need their beginning once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace hexad::modeling {

// R rows stand for T tokens, R <= T; rows and tokens are in the same order.
struct SharedPrefixes {
  std::vector<int64_t> row_of_token;  // [T]
  std::vector<int64_t> first_token;   // [R]: of those that the row stands for
  std::vector<int64_t> parent;        // [R]: the row before it in its sequences, -1 at a beginning
};

// ids [T] of sequences [offsets[b], offsets[b + 1]).
SharedPrefixes shared_prefixes(std::span<const int64_t> ids, std::span<const int64_t> offsets);

}  // namespace hexad::modeling
