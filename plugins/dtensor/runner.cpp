#include "plugins/dtensor/runner.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include "modeling/family/transformer.hpp"

namespace hexad::dtensor {
using modeling::LogprobResult;

void Runner::unshard(ShardedUnit& unit, int32_t which) {
  unit.unshard(model_.shards(static_cast<size_t>(&unit - model_.units().data()), which));
}

void Runner::prefetch(ShardedUnit& unit, int32_t which) {
  unit.prefetch(model_.shards(static_cast<size_t>(&unit - model_.units().data()), which));
}

at::Tensor Runner::embed(const modeling::MicroBatch* batch, int32_t which) {
  ShardedUnit& unit = model_.embedding();
  unshard(unit, which);
  prefetch(model_.block(0), which);
  const at::Tensor hidden = batch ? ends_.embed(*batch, unit.weights()[0]) : at::Tensor();
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

modeling::HeadWeights Runner::head_weights() const {
  const modeling::ModelConfig& config = model_.config();
  return {model_.head().weight(modeling::kFinalNormName),
          model_.logits_unit().weight(modeling::head_weight_name(config))};
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
  if (batch) result = ends_.outputs(*batch, hidden, head_weights(), options);
  model_.head().reshard();
  model_.embedding().reshard();
  return result;
}

void Runner::train(const modeling::MicroBatch* batch, const modeling::LogprobOptions& options,
                   const modeling::LossGradient& loss) {
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
  if (batch) ends_.embed_backward(*batch, grad, model_.embedding().grad_accumulator(0));
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
                                 const modeling::LogprobOptions& options, const modeling::LossGradient& loss) {
  ShardedUnit& unit = model_.head();
  unshard(unit, HEXAD_WEIGHTS_CURRENT);
  at::Tensor grad_hidden;
  if (batch) {
    const modeling::HeadRecord record = ends_.loss(*batch, hidden, head_weights(), options, loss);
    std::vector<at::Tensor> inputs = {record.input};
    inputs.insert(inputs.end(), unit.weights().begin(), unit.weights().end());
    const bool tied = model_.config().tie_word_embeddings;
    if (tied) inputs.push_back(model_.embedding().weights()[0]);
    const std::vector<at::Tensor> results = modeling::head_gradients(record, inputs);
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
  const std::vector<at::Tensor> results = modeling::gradients({output}, {grad}, inputs);
  for (size_t i = 0; i < unit.weights().size(); ++i)
    if (results[i + 1].defined()) unit.add_grad(i, results[i + 1]);
  record = {};
  return results[0];
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
