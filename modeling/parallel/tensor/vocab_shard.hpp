// One rank's rows of the vocabulary, and what softmax needs to know of the others': two all-reduces a batch of rows,
// never the logits themselves (vocab-parallel cross entropy of Megatron-LM, with the entropy in the same reduction).
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/op/row/logit_rows.hpp"
#include "modeling/parallel/group.hpp"
#include "modeling/parallel/placement.hpp"

namespace hexad::modeling {

struct VocabShard {
  Group group;             // one rank: the whole vocabulary
  Range rows;              // this rank's
  int64_t vocab_size = 0;  // of all ranks

  // The part of rank `group.rank()` when the vocabulary is cut as torch.chunk cuts it.
  static VocabShard of(int64_t vocab_size, const Group& group) {
    return {group, chunk_range(vocab_size, group.size(), group.rank()), vocab_size};
  }
  bool active() const { return group.size() > 1; }

  // int64 [N] global ids -> ids among this rank's rows, -1 where another rank has them.
  at::Tensor local(const at::Tensor& targets) const;
  // Makes statistics of local logits, and the targets' logits (0 where another rank has them), those of the whole
  // vocabulary. Collective.
  void combine(SoftmaxStatistics& statistics, at::Tensor& target_logits) const;
  // fp32 [N, rows] -> [N, vocab_size] on every rank, for filters that must see whole rows. Collective.
  at::Tensor gather(const at::Tensor& logits) const;
};

}  // namespace hexad::modeling
