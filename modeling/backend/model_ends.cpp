#include "modeling/backend/model_ends.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "modeling/family/transformer.hpp"
#include "modeling/op/next_token.hpp"

namespace hexad::modeling {
namespace {

// Rows of hidden states, or what was made of them -> those that are tokens.
at::Tensor of_tokens(const MicroBatch& batch, const at::Tensor& rows) {
  return batch.token_rows.defined() ? rows.index_select(0, batch.token_rows) : rows;
}

template <typename Function>
LogprobResult each(const LogprobResult& values, Function&& function) {
  const auto one = [&](const at::Tensor& x) { return x.defined() ? function(x) : x; };
  return {one(values.logprobs), one(values.entropy), one(values.unfiltered_logprobs), values.sequence_scores};
}

// Values at the predicting position of this rank's tokens (head_logprobs under batch.targets) -> [T] of all tokens, at
// the predicted token, 0 at each sequence's start; scores of sequences stay as they are. Collective over the
// context-parallel group; without gradients.
LogprobResult to_tokens(const MicroBatch& batch, const LogprobResult& rows, const Group& context) {
  const at::NoGradGuard no_grad;
  return each(rows, [&](const at::Tensor& values) {
    at::Tensor all = values.detach();
    if (batch.token_index.defined()) {
      all = at::zeros({batch.tokens}, all.options()).index_copy_(0, batch.token_index, all);
      context.all_reduce(all).wait();
    }
    return at_predicted_token(all);
  });
}

// The way back for gradients: what each of this rank's values gets of [T].
LogprobResult to_rows(const MicroBatch& batch, const LogprobResult& tokens) {
  return each(tokens, [&](const at::Tensor& values) {
    const at::Tensor predicting = values.roll(-1, 0);
    return batch.token_index.defined() ? predicting.index_select(0, batch.token_index) : predicting;
  });
}

}  // namespace

ModelEnds::ModelEnds(const ModelConfig& config, const TensorParallel& tp, const Group& context)
    : config_(config), tp_(tp), context_(context), vocab_(VocabShard::of(config.vocab_size, tp.group)) {}

at::Tensor ModelEnds::embed(const MicroBatch& batch, const at::Tensor& weight) const {
  const at::NoGradGuard no_grad;  // its backward is an index_add into the gradient
  return tp_.active() ? vocab_parallel_embed(weight, vocab_.rows.begin, batch.ids, tp_)
                      : modeling::embed(weight, batch.ids);
}

void ModelEnds::embed_backward(const MicroBatch& batch, const at::Tensor& grad, at::Tensor sum) const {
  const at::NoGradGuard no_grad;
  if (sum.dim() == 3) {  // parts with gaps between them (op/linear.hpp), as small vocabularies leave
    const at::Tensor rows = at::zeros({sum.size(0) * sum.size(1), sum.size(2)}, sum.options());
    embed_backward(batch, grad, rows);
    sum.add_(rows.view(sum.sizes()));
    return;
  }
  at::Tensor whole = grad.to(at::kFloat);
  if (!tp_.active()) {
    sum.index_add_(0, batch.ids, whole.to(sum.scalar_type()));
    return;
  }
  if (tp_.shards_tokens()) whole = gather_tokens(whole, tp_.group);
  const at::Tensor rows = vocab_.local(batch.ids), mine = rows.ge(0).nonzero().squeeze(1);
  sum.index_add_(0, rows.index_select(0, mine), whole.index_select(0, mine).to(sum.scalar_type()));
}

// The score of a sequence is that of its last token, as in transformers' sequence classifiers. Context-parallel ranks
// score the sequences that end on them; with sequence parallelism, where the gradients of all ranks are summed, the
// first of the tensor-parallel ranks counts, and without it each computes the same.
LogprobResult ModelEnds::scores(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights) const {
  at::Tensor normed = final_norm(config_, weights.norm, hidden);
  if (tp_.shards_tokens()) normed = gather_tokens(normed, tp_.group);
  const at::Tensor last = of_tokens(batch, normed).index_select(0, batch.last_tokens).to(at::kFloat);
  at::Tensor mine = at::matmul(last, weights.logits.to(at::kFloat).squeeze(0));
  if (tp_.shards_tokens() && tp_.group.rank() != 0) mine = mine * 0;  // its part in the sums' backward passes stays
  at::Tensor all = at::zeros({batch.sequences}, mine.options()).index_copy(0, batch.ended, mine);
  if (tp_.shards_tokens()) all = sum_over_ranks(all, tp_.group);
  if (context_.size() > 1) all = sum_over_ranks(all, context_);
  LogprobResult result;
  result.sequence_scores = all;
  return result;
}

LogprobResult ModelEnds::head(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights,
                              const LogprobOptions& wanted) const {
  if (config_.reward_head) return scores(batch, hidden, weights);
  const auto norm = [&](const at::Tensor& rows) { return final_norm(config_, weights.norm, rows); };
  // Where every rank has all rows, those that are no tokens are left out early.
  const at::Tensor normed = tp_.shards_tokens() ? of_tokens(batch, gather_tokens(norm(hidden), tp_.group))
                                                : copy_to_ranks(norm(of_tokens(batch, hidden)), tp_.group);
  LogprobOptions options = wanted;
  options.vocab = vocab_;
  LogprobResult result = head_logprobs(normed, weights.logits, batch.targets, options);
  if (batch.prediction_of_token.defined()) {
    for (at::Tensor* values : {&result.logprobs, &result.entropy, &result.unfiltered_logprobs})
      if (values->defined()) *values = values->index_select(0, batch.prediction_of_token);
  }
  return result;
}

LogprobResult ModelEnds::outputs(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights,
                                 const LogprobOptions& options) const {
  const at::NoGradGuard no_grad;
  return to_tokens(batch, head(batch, hidden, weights, options), context_);
}

HeadRecord ModelEnds::loss(const MicroBatch& batch, const at::Tensor& hidden, const HeadWeights& weights,
                           const LogprobOptions& options, const LossGradient& gradient) const {
  const at::AutoGradMode with_grad(true);
  HeadRecord record;
  record.input = hidden.detach().requires_grad_(true);
  record.outputs = head(batch, record.input, weights, options);
  record.grads = to_rows(batch, gradient(to_tokens(batch, record.outputs, context_)));
  return record;
}

std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& grads,
                                  const std::vector<at::Tensor>& inputs) {
  if (outputs.empty()) return std::vector<at::Tensor>(inputs.size());
  return torch::autograd::grad(outputs, inputs, grads, /*retain_graph=*/false, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

std::vector<at::Tensor> head_gradients(const HeadRecord& record, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> outputs, grads;
  const auto add = [&](const at::Tensor& output, const at::Tensor& grad) {
    if (output.defined() && grad.defined()) outputs.push_back(output), grads.push_back(grad);
  };
  add(record.outputs.logprobs, record.grads.logprobs);
  add(record.outputs.entropy, record.grads.entropy);
  add(record.outputs.unfiltered_logprobs, record.grads.unfiltered_logprobs);
  add(record.outputs.sequence_scores, record.grads.sequence_scores);
  return gradients(outputs, grads, inputs);
}

}  // namespace hexad::modeling
