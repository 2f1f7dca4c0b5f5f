// Causal attention of runs of queries over the keys of their documents, in blocks: memory grows with the tokens and not
// with their square, and scores are computed again in the backward pass.
#pragma once
#include <cstdint>
#include <vector>

#include "modeling/op/attention/block.hpp"

namespace hexad::modeling {

// Consecutive queries of one document.
struct QueryChunk {
  int64_t row, size;        // rows of q
  int64_t document, begin;  // the row of k where the document begins, and the first query's position in it
};

// q [n, H, D] in which every row is in one chunk; k and v hold each chunk's document at least up to its last query.
// Each query sees the keys before it and itself, `window` of them (0: all). out is in the dtype of q. Not
// differentiable.
BlockResult chunk_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<QueryChunk>& chunks, int64_t window);

// `joined`: what chunk_attention returned. The gradients are fp32.
BlockGradients chunk_attention_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const BlockResult& joined,
                                        const std::vector<QueryChunk>& chunks, int64_t window);

}  // namespace hexad::modeling
