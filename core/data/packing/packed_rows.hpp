// Rows that hold several sequences each, as a plain [rows, width] batch with position ids: the layout of models that
// take an attention mask or flash-attention's cu_seqlens instead of one packed row.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/tensor.hpp"

namespace hexad::data {

struct PackedRows {
  Tensor input_ids;       // i64 [rows, width]
  Tensor position_ids;    // i64 [rows, width], from 0 in every sequence, 0 in the padding
  Tensor attention_mask;  // bool [rows, width, width]: causal over the used part of a row, across its sequences
  std::vector<int64_t> cu_seqlens;  // [B+1] over all rows
  int64_t max_seqlen = 0;
};

// The first sequences_per_row[0] samples make row 0 and so on; width is the longest row, at least `min_width`.
// Sequences of a row see each other through attention_mask, as in NeMo-RL's pack_sequences: use cu_seqlens to keep
// them apart. Throws Error(data) if the counts do not add up to the samples.
PackedRows pack_into_rows(const Tensor& input_ids, std::span<const int64_t> lengths,
                          std::span<const int64_t> sequences_per_row, int64_t padding_value, int64_t min_width);

}  // namespace hexad::data
