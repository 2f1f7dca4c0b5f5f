// What a weight's bits come to, with their places: two that lie apart, on a trainer's and a generator's side, can be
// told equal by it.
#pragma once
#include <cstdint>

#include "plugins/native/model/weights.hpp"
#include "plugins/native/parallel/replica.hpp"

namespace hexad::native {

// By name, of a weight seen as a matrix of its first dimension by the others: the sum over rows i and columns j of its
// bits, as a signed integer of 8, 16, 32 or 64, times (1 + i + 1000003 j), modulo 2^48 (a double holds it). What
// `parts` says is cut counts where it lies in the whole weight, and every rank of the replica gets the sum over all of
// them. In FP8 a matrix whose columns are cut is cast part by part (fp8_rows.hpp): its sums are those of the parts'
// bits, and of a matrix of scales with a column for each part. They are equal where the replicas have as many ranks;
// all others also where not.
std::map<std::string, int64_t> weight_sums(const WeightMap& weights, const std::vector<WeightPart>& parts = {},
                                           const Replica& replica = {});

}  // namespace hexad::native
