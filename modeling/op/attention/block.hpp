// Attention of some queries over some keys with the log-sum-exp that lets several such blocks be joined: what context
// parallelism and long rows are made of. No block ever holds scores of all queries and keys.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lib/model/range.hpp"

namespace hexad::modeling {

// Which keys a query sees: key j is at position key_begin + j, query i at query_begin + i of one sequence.
struct BlockShape {
  int64_t query_begin = 0, key_begin = 0;
  int64_t window = 0;  // keys a query sees, itself included; 0: all before it
};

struct BlockResult {
  at::Tensor out;      // [n, H, Dv], in the dtype of q; fp32 once joined
  at::Tensor log_sum;  // fp32 [H, n]
};

// q [n, H, D], k [m, Hkv, D], v [m, Hkv, Dv] -> the attention over these keys alone; scale 1 / sqrt(D). A query that
// sees none of them gets 0 and the log-sum -inf; undefined `out` when no query sees any. Not differentiable: see below.
BlockResult attention_block(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const BlockShape& shape);

// Joins two blocks of the same queries over different keys; an undefined one is no block.
void join(BlockResult& into, const BlockResult& other);

struct BlockGradients {
  at::Tensor q, k, v;  // undefined when no query sees any key
};
// The block's part of the gradient, given the joined result of all blocks (FlashAttention's backward pass,
// arXiv 2205.14135): parts add up.
BlockGradients attention_block_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const BlockResult& joined, const BlockShape& shape);

// What one kernel call computes of a block.
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
