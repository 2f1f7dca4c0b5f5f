// One micro-batch as the transformer takes it: packed, or padded to [B, S]; outputs are packed [T] either way. Under
// context parallelism a rank has its zigzag part of the rows.
#pragma once
#include <memory>

#include <ATen/core/Tensor.h>
#include <hexad/abi.h>

#include "modeling/family/transformer.hpp"
#include "modeling/op/rope.hpp"
#include "modeling/parallel/context/attention.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

namespace hexad::modeling {

// What the routers of a model with experts must know of this rank's rows (router_rows()). Of rows that fill up, which
// are nobody's tokens, nothing counts.
struct RouterRows {
  at::Tensor tokens;          // int64: which token of the micro-batch each row is; -1: none
  at::Tensor padding;         // bool: no token
  at::Tensor sequences;       // int64: the sequence of the token; 0 where there is none
  int64_t num_sequences = 0;  // of the whole micro-batch
  bool stands_in = false;     // the micro-batch fills up a schedule: it has no token at all
};

struct MicroBatch {
  int64_t tokens = 0;      // T
  at::Tensor ids;          // int64 [R]: this rank's rows; R = T packed, B * S padded, with what fills them up
  at::Tensor targets;      // int64 [n]: the token after each of this rank's n tokens, -1 at the end of a sequence
  at::Tensor token_rows;   // int64 [n]: row of each of them among R; undefined when they are the same
  at::Tensor token_index;  // int64 [n]: which of the T tokens they are; undefined when they are all
  // int64 [T]: which of the n predictions is that of each token, where tokens share them; else undefined.
  at::Tensor prediction_of_token;
  // Where the model has a reward head: which of this rank's n tokens end a sequence, int64 [m], and which of the
  // `sequences` they end, int64 [m]. Else undefined.
  at::Tensor last_tokens, ended;
  int64_t sequences = 0;
  RouterRows router_rows;  // undefined unless a backend asks for them
  Rope rope;
  std::unique_ptr<Attention> attention;
};

// Has it nothing to compute? Dummies equalise the number of micro-batches between data-parallel ranks.
bool is_empty(const hexad_batch& batch);

// A batch on the host of one sequence, the token 0. Where ranks meet inside the model, at their experts, it stands in
// for an empty one and counts nothing.
const hexad_batch& one_token();

struct BatchLayout {
  bool packed = false;       // run it packed even if the host asked for [B, S]
  int64_t row_multiple = 1;  // a rank's packed rows are filled up to a multiple of this, by a sequence that nobody sees
  ContextParallel context = {};  // ranks that share the rows; only packed
  bool batch_invariant = false;  // AttentionKernel::batch_invariant, also of [B, S]
  // On a CPU and packed: sequences that begin alike are computed once as far as they do (shared_prefixes.hpp).
  bool share_prefixes = false;
};

// Throws sdk::Error: lengths that do not add up, sequences longer than the padding, ids outside the vocabulary.
MicroBatch make_micro_batch(const hexad_batch& batch, const ModelConfig& config, at::Device device,
                            const BatchLayout& wanted = {});

// Of this rank's rows of `batch`, which was made from `from`; with sequence parallelism of its run of them.
// `stands_in`: the batch fills up a schedule, and no row of it counts.
RouterRows router_rows(const MicroBatch& batch, const hexad_batch& from, const TensorParallel& tp, bool stands_in);

}  // namespace hexad::modeling
