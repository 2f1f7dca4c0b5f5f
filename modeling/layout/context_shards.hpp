// Which tokens of a row every context-parallel rank holds, and the way back.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/model/range.hpp"

namespace hexad::modeling::layout {

// The part of one rank, in the order in which it holds it.
struct ContextShard {
  std::vector<model::Range> slices;  // of the row; neighbours are joined, empty ones left out
  std::vector<int64_t> cu_seqlens;   // [B + 1] of the tokens held: every document's boundaries divided by the ranks
  int64_t tokens() const { return cu_seqlens.back(); }
};

// Zigzag: every document is cut into 2 * ranks equal chunks, and rank r holds the r-th from the front and the r-th from
// the back, so that causal attention costs every rank the same (Megatron-Core utils.py:get_batch_on_this_cp_rank;
// Transformer Engine's thd_get_partitioned_indices for packed rows).
// cu_seqlens: [B + 1] padded boundaries of the row's documents, from 0. One document per row ([0, S]) is the BSHD form:
// the same slices serve every row of the batch. Throws Error unless every length divides by 2 * ranks (ranks > 1) and
// 0 <= rank < ranks.
ContextShard context_shard(std::span<const int64_t> cu_seqlens, int64_t ranks, int64_t rank);

// The places in the row of the tokens that the shard holds: for index_select.
std::vector<int64_t> shard_indices(const ContextShard& shard);

// The inverse: where token i of the row stands in the concatenation of all ranks' shards, as an all-gather returns them
// in the order of ranks.
std::vector<int64_t> gathered_positions(std::span<const int64_t> cu_seqlens, int64_t ranks);

// The same for the shards of `count` neighbours from rank `first` on: entry i is where the i-th of their tokens, in the
// order of the row, stands in the concatenation of their shards. Where count divides ranks and first, those tokens in
// that order are the shard of rank first / count among ranks / count.
std::vector<int64_t> merged_positions(std::span<const int64_t> cu_seqlens, int64_t ranks, int64_t first, int64_t count);

// The boundaries of a batch of packed rows as one row: row i is moved by i * row_length, and what pads its boundaries
// (repetitions of row_length) is dropped; empty documents inside a row stay (utils.py:
// _merge_cu_seqlens_across_micro_batch). Throws Error for a row that does not rise from 0 to row_length.
std::vector<int64_t> flatten_cu_seqlens(const std::vector<std::vector<int64_t>>& rows, int64_t row_length);

}  // namespace hexad::modeling::layout
