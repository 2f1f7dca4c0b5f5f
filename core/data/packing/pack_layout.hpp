// How the sequences of a pack lie in one row: padding of each sequence and of the row, and the slice of the row that a
// context-parallel rank computes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/tensor.hpp"

namespace hexad::data {

// The multiples that a parallel layout asks for.
struct PackAlignment {
  int64_t sequence_multiple = 1;      // every sequence is padded to this
  int64_t total_multiple = 1;         // the row is padded to this
  std::optional<int64_t> total = {};  // the row is padded to exactly this
};

struct PackParallelism {
  int64_t tensor_parallel = 1;
  bool sequence_parallel = false;
  int64_t pipeline_parallel = 1;
  int64_t context_parallel = 1;
  std::optional<std::string> fp8_recipe = {};  // absent: no fp8; "blockwise" 128, "mxfp8" 32, any other 16
};

// `sequence_multiple` is policy.make_sequence_length_divisible_by; it must hold 2 * CP chunks (CP > 1) of TP parts (TP
// > 1 with sequence parallelism), else Error(config). Pipeline stages want rows of one length: `longest_pack`, the
// padded tokens of the longest pack of the batch, is then the total.
PackAlignment pack_alignment(const PackParallelism& parallelism, int64_t sequence_multiple, int64_t longest_pack);

struct PackLayout {
  std::vector<int32_t> cu_seqlens;         // [B+1] of true lengths
  std::vector<int32_t> cu_seqlens_padded;  // [B+1]; the last sequence takes the padding of the row
  int64_t max_seqlen = 0;                  // padded
  int64_t tokens() const { return cu_seqlens_padded.back(); }
};
// Throws Error(data) if the sequences do not fit alignment.total.
PackLayout pack_layout(std::span<const int64_t> lengths, const PackAlignment& alignment);

// packed [T] (true lengths, i64) -> [layout.tokens()], filled up with `pad_value`.
Tensor lay_out(const Tensor& packed, const PackLayout& layout, int64_t pad_value);

// The part of a laid-out row that context-parallel rank `rank` of `ranks` holds: of the 2 * ranks equal chunks of each
// sequence the `rank`-th from the front and the `rank`-th from the back (zigzag, balances causal attention).
Tensor context_parallel_slice(const Tensor& row, const PackLayout& layout, int64_t rank, int64_t ranks);

}  // namespace hexad::data
