// Draws from a row of logits whose columns lie on several ranks, when no filter has to see it whole: each rank tells
// what its part comes to, all see in which part the draw falls, and that one's rank finds the token there. With the
// same u it is the token that draw() gives for the whole row, but where u falls between two tokens within rounding.
#pragma once
#include <bit>
#include <cstdint>
#include <span>

#include "plugins/native/sample/sampler.hpp"

namespace hexad::native {

// Of a part of a row, for one draw.
struct PartSum {
  double largest;  // logit; nan if any is
  double sum;      // of exp((logit - largest) / temperature); 0 where the largest is not finite
};

// `params` is normalized and not filtered; a part may have no columns.
PartSum sum_of_part(const float* logits, int64_t columns, const SamplingParams& params);

// Of all parts, in the order of their columns.
struct PartDraw {
  int64_t part = -1;   // in which the draw falls; -1: the row has a nan or no finite largest logit
  double rest = 0;     // how far: a sum of the part's own weights
  double largest = 0;  // of the row
  double total = 0;    // of exp((logit - largest) / temperature) over the row
};
PartDraw find_part(std::span<const PartSum> parts, const SamplingParams& params, double u);

// The token of the part that a draw falls in; `first` is the part's first column.
Draw draw_in_part(const float* logits, int64_t columns, int64_t first, const PartDraw& found,
                  const SamplingParams& params);

// A draw on its way to the other ranks, who say 0: what is largest is a token of the vocabulary, whatever they say.
inline int64_t number_of(const Draw& draw) {
  return (int64_t{draw.token} + 1) << 32 | std::bit_cast<uint32_t>(draw.logprob);
}
inline Draw draw_of(int64_t number) {
  return {static_cast<int32_t>(number >> 32) - 1, std::bit_cast<float>(static_cast<uint32_t>(number))};
}

}  // namespace hexad::native
