// A block of causal attention cut into pieces that one kernel call computes.
#pragma once
#include <cstdint>
#include <vector>

#include "lib/model/range.hpp"
#include "modeling/op/attention/block.hpp"

namespace hexad::modeling {

struct AttentionPiece {
  enum class Kind {
    whole,     // every query sees every key
    diagonal,  // as many keys as queries, query i sees the keys 0 ... i
    masked     // anything else, of a bounded number of queries
  };
  model::Range queries, keys;  // rows of q and k
  Kind kind;
};

// The pieces of a block of `queries` x `keys`, ordered by queries: every pair that sees each other is in one of them.
// Without a window there are at most two for queries that begin at a key or after the last one; with one, the queries
// are cut into tiles, of which only the edge of the window is masked.
std::vector<AttentionPiece> attention_pieces(int64_t queries, int64_t keys, const BlockShape& shape);

}  // namespace hexad::modeling
