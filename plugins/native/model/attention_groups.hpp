// How the rows of a step are cut into batched attention calls.
#pragma once
#include <cstdint>
#include <vector>

#include "plugins/native/schedule/scheduler.hpp"

namespace hexad::native {

// B pieces of sequences that are run as one batch of shape [B, queries] against [B, blocks * block_size] keys.
struct AttentionGroup {
  int64_t pieces = 0, queries = 0, blocks = 0;
  int64_t first = 0;               // place of the first row, behind fillers that repeat it: only where B is 1
  std::vector<int64_t> rows;       // [B * queries]: rows of the step; fillers behind them repeat the piece's last one
  std::vector<int64_t> positions;  // [B * queries] of those rows in their sequences
  std::vector<int64_t> last;       // [B]: largest position of the piece
  std::vector<int64_t> table;      // [B * blocks]: blocks of the cache; a filler repeats the sequence's last one
};

// Rows that wait for one token are batched with others of similar length (at most `max_keys` keys a group, or one
// piece); a chunk of a prompt is a group of its own.
std::vector<AttentionGroup> group_by_length(const Step& step, int64_t block_size, int64_t max_keys);

// Deterministic mode: one group for every kTile positions of a sequence, aligned to multiples of kTile, so that shapes,
// and a row's place in them, depend on nothing but the position: libraries sum some rows of a product in another order.
inline constexpr int64_t kTile = 16;
std::vector<AttentionGroup> group_by_position(const Step& step, int64_t block_size);

}  // namespace hexad::native
