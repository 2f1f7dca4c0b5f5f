#include "plugins/dtensor/runner.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>
#include <torch/csrc/autograd/autograd.h>

#include "modeling/backend/token_outputs.hpp"
#include "modeling/family/transformer.hpp"

namespace hexad::dtensor {
namespace {

using modeling::LogprobResult;

// Gradients by `inputs` of the outputs that have one; undefined where an output does not depend on an input.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& grads,
                                  const std::vector<at::Tensor>& inputs) {
  if (outputs.empty()) return std::vector<at::Tensor>(inputs.size());
  return torch::autograd::grad(outputs, inputs, grads, /*retain_graph=*/false, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

}  // namespace

modeling::VocabShard Runner::vocab() const {
  return modeling::VocabShard::of(model_.config().vocab_size, options_.tp.group);
}

void Runner::unshard(ShardedUnit& unit, int32_t which) {
  unit.unshard(model_.shards(static_cast<size_t>(&unit - model_.units().data()), which));
}

void Runner::prefetch(ShardedUnit& unit, int32_t which) {
  unit.prefetch(model_.shards(static_cast<size_t>(&unit - model_.units().data()), which));
}

at::Tensor Runner::embed(const modeling::MicroBatch* batch, int32_t which) {
  const at::NoGradGuard no_grad;  // its backward is an index_add into the gradient
  ShardedUnit& unit = model_.embedding();
  unshard(unit, which);
  prefetch(model_.block(0), which);
  at::Tensor hidden;
  if (batch && options_.tp.active()) {
    hidden = modeling::vocab_parallel_embed(unit.weights()[0], vocab().rows.begin, batch->ids, options_.tp);
  } else if (batch) {
    hidden = modeling::embed(unit.weights()[0], batch->ids);
  }
  if (!model_.config().tie_word_embeddings) unit.reshard();
  return hidden;
}

at::Tensor Runner::run_block(const modeling::MicroBatch& batch, int64_t layer, const at::Tensor& hidden,
                             int32_t which) {
  const ShardedUnit& unit = model_.block(layer);
  const auto lookup = [&](const std::string& name) {
    const at::Tensor frozen = model_.frozen(name, which);
    return frozen.defined() ? frozen : unit.weight(name);
  };
  const modeling::LayerWeights weights = modeling::layer_weights(model_.config(), layer, lookup);
  modeling::LinearOptions linear;
  linear.tp = options_.tp;
  return modeling::block_forward(model_.config(), layer, weights, hidden, batch.rope, *batch.attention, linear);
}

LogprobResult Runner::run_head(const modeling::MicroBatch& batch, const at::Tensor& hidden,
                               const modeling::LogprobOptions& wanted) {
  const auto tokens = [&](const at::Tensor& rows) {
    return batch.token_rows.defined() ? rows.index_select(0, batch.token_rows) : rows;
  };
  const auto norm = [&](const at::Tensor& rows) {
    return modeling::final_norm(model_.config(), model_.head().weight(modeling::kFinalNormName), rows);
  };
  // Where every rank has all rows, those that are no tokens are left out early.
  const modeling::Group& group = options_.tp.group;
  const at::Tensor normed = options_.tp.shards_tokens() ? tokens(modeling::gather_tokens(norm(hidden), group))
                                                        : modeling::copy_to_ranks(norm(tokens(hidden)), group);
  const at::Tensor& weight = model_.logits_unit().weight(modeling::head_weight_name(model_.config()));
  modeling::LogprobOptions options = wanted;
  options.vocab = vocab();
  return modeling::head_logprobs(normed, weight, batch.targets, options);
}

LogprobResult Runner::forward(const modeling::MicroBatch* batch, int32_t which,
                              const modeling::LogprobOptions& options) {
  const at::NoGradGuard no_grad;
  const int64_t layers = model_.config().num_layers;
  at::Tensor hidden = embed(batch, which);
  for (int64_t layer = 0; layer < layers; ++layer) {
    unshard(model_.block(layer), which);
    prefetch(layer + 1 < layers ? model_.block(layer + 1) : model_.head(), which);
    if (batch) hidden = run_block(*batch, layer, hidden, which);
    model_.block(layer).reshard();
  }
  unshard(model_.head(), which);
  LogprobResult result;
  if (batch) result = modeling::to_tokens(*batch, run_head(*batch, hidden, options), options_.context);
  model_.head().reshard();
  model_.embedding().reshard();
  return result;
}

void Runner::train(const modeling::MicroBatch* batch, const modeling::LogprobOptions& options,
                   const LossGradient& loss) {
  const at::AutoGradMode with_grad(true);
  const int32_t which = HEXAD_WEIGHTS_CURRENT;
  at::Tensor hidden = embed(batch, which);
  std::vector<BlockRecord> records = forward_blocks(batch, hidden);
  at::Tensor grad = backward_head(batch, hidden, options, loss);
  for (int64_t layer = model_.config().num_layers - 1; layer >= 0; --layer) {
    unshard(model_.block(layer), which);
    if (layer > 0) prefetch(model_.block(layer - 1), which);
    if (batch) grad = backward_block(*batch, layer, records[static_cast<size_t>(layer)], grad);
    model_.block(layer).reshard();
    reduce(model_.block(layer));
  }
  if (batch) backward_embedding(*batch, grad);
  reduce(model_.embedding());
  reducing_->finish_reduce();
  reducing_ = nullptr;
}

std::vector<Runner::BlockRecord> Runner::forward_blocks(const modeling::MicroBatch* batch, at::Tensor& hidden) {
  const int64_t layers = model_.config().num_layers;
  std::vector<BlockRecord> records(static_cast<size_t>(layers));
  for (int64_t layer = 0; layer < layers; ++layer) {
    ShardedUnit& unit = model_.block(layer);
    unshard(unit, HEXAD_WEIGHTS_CURRENT);
    prefetch(layer + 1 < layers ? model_.block(layer + 1) : model_.head(), HEXAD_WEIGHTS_CURRENT);
    if (batch) {
      BlockRecord& record = records[static_cast<size_t>(layer)];
      record.input = hidden.detach().requires_grad_(true);
      const at::AutoGradMode mode(!options_.activation_checkpointing);
      const at::Tensor output = run_block(*batch, layer, record.input, HEXAD_WEIGHTS_CURRENT);
      if (!options_.activation_checkpointing) record.output = output;
      hidden = output.detach();
    }
    // The last block's backward comes next: its weights stay.
    if (options_.reshard_after_forward && layer + 1 < layers) unit.reshard();
  }
  return records;
}

at::Tensor Runner::backward_head(const modeling::MicroBatch* batch, const at::Tensor& hidden,
                                 const modeling::LogprobOptions& options, const LossGradient& loss) {
  ShardedUnit& unit = model_.head();
  unshard(unit, HEXAD_WEIGHTS_CURRENT);
  at::Tensor grad_hidden;
  if (batch) {
    const at::Tensor input = hidden.detach().requires_grad_(true);
    const LogprobResult outputs = run_head(*batch, input, options);
    const LogprobResult grads = modeling::to_rows(*batch, loss(modeling::to_tokens(*batch, outputs, options_.context)));
    std::vector<at::Tensor> with_grad, grad_outputs, inputs = {input};
    const auto add = [&](const at::Tensor& output, const at::Tensor& grad) {
      if (output.defined() && grad.defined()) with_grad.push_back(output), grad_outputs.push_back(grad);
    };
    add(outputs.logprobs, grads.logprobs);
    add(outputs.entropy, grads.entropy);
    add(outputs.unfiltered_logprobs, grads.unfiltered_logprobs);
    inputs.insert(inputs.end(), unit.weights().begin(), unit.weights().end());
    const bool tied = model_.config().tie_word_embeddings;
    if (tied) inputs.push_back(model_.embedding().weights()[0]);
    const std::vector<at::Tensor> results = gradients(with_grad, grad_outputs, inputs);
    grad_hidden = results[0].defined() ? results[0] : at::zeros_like(hidden);
    for (size_t i = 0; i < unit.weights().size(); ++i)
      if (results[i + 1].defined()) unit.add_grad(i, results[i + 1]);
    if (tied && results.back().defined()) model_.embedding().add_grad(0, results.back());
  }
  unit.reshard();
  model_.embedding().reshard();
  reduce(unit);
  return grad_hidden;
}

at::Tensor Runner::backward_block(const modeling::MicroBatch& batch, int64_t layer, BlockRecord& record,
                                  const at::Tensor& grad) {
  ShardedUnit& unit = model_.block(layer);
  const at::Tensor output =
      record.output.defined() ? record.output : run_block(batch, layer, record.input, HEXAD_WEIGHTS_CURRENT);
  std::vector<at::Tensor> inputs = {record.input};
  inputs.insert(inputs.end(), unit.weights().begin(), unit.weights().end());
  const std::vector<at::Tensor> results = gradients({output}, {grad}, inputs);
  for (size_t i = 0; i < unit.weights().size(); ++i)
    if (results[i + 1].defined()) unit.add_grad(i, results[i + 1]);
  record = {};
  return results[0];
}

void Runner::backward_embedding(const modeling::MicroBatch& batch, const at::Tensor& grad) {
  const at::NoGradGuard no_grad;
  const at::Tensor sum = model_.embedding().grad_accumulator(0);
  at::Tensor whole = grad.to(at::kFloat);
  if (!options_.tp.active()) {
    sum.index_add_(0, batch.ids, whole);
    return;
  }
  if (options_.tp.shards_tokens()) whole = modeling::gather_tokens(whole, options_.tp.group);
  const at::Tensor rows = vocab().local(batch.ids), mine = rows.ge(0).nonzero().squeeze(1);
  sum.index_add_(0, rows.index_select(0, mine), whole.index_select(0, mine));
}

void Runner::abandon() {
  for (ShardedUnit& unit : model_.units()) unit.abandon();
  reducing_ = nullptr;
}

void Runner::reduce(ShardedUnit& unit) {
  // One reduce-scatter is under way while the next unit computes.
  if (reducing_) reducing_->finish_reduce();
  unit.start_reduce();
  reducing_ = &unit;
}

}  // namespace hexad::dtensor
