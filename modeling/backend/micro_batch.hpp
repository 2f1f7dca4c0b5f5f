// One micro-batch as the transformer takes it: packed, or padded to [B, S]; outputs are packed [T] either way.
#pragma once
#include <memory>

#include <ATen/core/Tensor.h>
#include <hexad/abi.h>

#include "modeling/family/transformer.hpp"
#include "modeling/op/rope.hpp"

namespace hexad::modeling {

struct MicroBatch {
  int64_t tokens = 0;     // T
  at::Tensor ids;         // int64 [R]: R = T packed, or B * S padded
  at::Tensor targets;     // int64 [T]: the token after each position, -1 at the end of a sequence
  at::Tensor token_rows;  // int64 [T]: row of each token among R; undefined when they are the same
  Rope rope;
  std::unique_ptr<Attention> attention;
};

struct BatchLayout {
  bool packed = false;       // run it packed even if the host asked for [B, S]
  int64_t row_multiple = 1;  // packed rows are filled up to a multiple of this, by a sequence that nobody sees
};

// Throws sdk::Error: lengths that do not add up, sequences longer than the padding, ids outside the vocabulary.
MicroBatch make_micro_batch(const hexad_batch& batch, const ModelConfig& config, at::Device device,
                            const BatchLayout& wanted = {});

}  // namespace hexad::modeling
