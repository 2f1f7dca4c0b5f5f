// Between packed per-token arrays [T, ...] and right-padded ones [B, S, ...].
#pragma once
#include <cstdint>
#include <span>

#include "core/data/batch.hpp"

namespace hexad::data {

// ceil(value / multiple) * multiple, for multiple >= 1.
constexpr int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// padded [B, S, ...] -> [T, ...]: the first lengths[i] entries of every row. Throws Error(data) if a length exceeds S.
Tensor pack_rows(const Tensor& padded, std::span<const int64_t> lengths);

// packed [T, ...] -> [B, S, ...] filled up with `pad_value`; S = the longest sample, at least `min_width`, rounded up
// to a multiple of `multiple`.
Tensor pad_rows(const Tensor& packed, std::span<const int64_t> cu_seqlens, double pad_value, int64_t min_width = 0,
                int64_t multiple = 1);

// A token column of a batch, padded.
Tensor to_padded(const Batch& batch, const std::string& name, double pad_value, int64_t min_width = 0,
                 int64_t multiple = 1);

}  // namespace hexad::data
