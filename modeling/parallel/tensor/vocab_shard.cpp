#include "modeling/parallel/tensor/vocab_shard.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {

at::Tensor VocabShard::local(const at::Tensor& targets) const {
  const at::Tensor shifted = targets - rows.begin;
  return shifted.masked_fill(shifted.lt(0).logical_or(shifted.ge(rows.size())), -1);
}

void VocabShard::combine(SoftmaxStatistics& statistics, at::Tensor& target_logits) const {
  at::Tensor largest = statistics.log_sum.clone();
  group.all_reduce(largest, Reduce::max).wait();
  const at::Tensor share = (statistics.log_sum - largest).exp();    // of the probability mass, times a common factor
  const at::Tensor mean = statistics.log_sum - statistics.entropy;  // of the local logits under the local softmax
  at::Tensor sums = at::stack({share, share * mean, target_logits});
  group.all_reduce(sums).wait();
  statistics.log_sum = largest + sums[0].log();
  statistics.entropy = statistics.log_sum - sums[1] / sums[0];
  target_logits = sums[2];
}

at::Tensor VocabShard::gather(const at::Tensor& logits) const {
  const int64_t ranks = group.size(), chunk = chunk_length(vocab_size, ranks), count = logits.size(0);
  const at::Tensor mine = at::constant_pad_nd(logits, {0, chunk - logits.size(1)}).contiguous();
  at::Tensor all = at::empty({ranks, count, chunk}, logits.options());
  group.all_gather(all, mine).wait();
  return all.permute({1, 0, 2}).reshape({count, ranks * chunk}).slice(1, 0, vocab_size);
}

}  // namespace hexad::modeling
