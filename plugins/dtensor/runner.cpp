#include "plugins/dtensor/runner.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include "modeling/parallel/storage.hpp"

namespace hexad::dtensor {
using modeling::LogprobResult;

namespace {

// Experts that are shared out are whole; otherwise each is cut over the tensor-parallel ranks.
std::unique_ptr<modeling::ExpertDispatcher> make_dispatcher(const ShardedModel& model, const RunnerOptions& options) {
  const modeling::Group &ep = model.groups().ep, &tp = options.tp.group;
  if (!model.config().moe) return nullptr;
  if (ep.size() > 1 && options.gather_tokens)
    return std::make_unique<modeling::AllGatherDispatcher>(modeling::ExpertGroup{ep});
  if (ep.size() > 1) return std::make_unique<modeling::AllToAllDispatcher>(modeling::ExpertGroup{ep});
  if (options.tp.shards_tokens())
    return std::make_unique<modeling::AllGatherDispatcher>(modeling::ExpertGroup{tp, tp.size()});
  if (options.tp.active()) return std::make_unique<modeling::EqualTokensDispatcher>(tp);
  return nullptr;
}

modeling::Residual leaves_of(const modeling::Residual& stream) {
  const auto leaf = [](const at::Tensor& x) { return x.defined() ? x.detach().requires_grad_(true) : x; };
  return {leaf(stream.hidden), leaf(stream.delta)};
}

}  // namespace

Runner::Runner(ShardedModel& model, const RunnerOptions& options)
    : model_(model),
      options_(options),
      ends_(model.config(), options.tp, options.context),
      dispatcher_(make_dispatcher(model, options)) {
  const modeling::Group& ep = model.groups().ep;
  if (ep.size() > 1) experts_ = modeling::ExpertGroup{ep}.local(model.config().moe->num_experts);
}

void Runner::unshard(ShardedUnit& unit, int32_t which) {
  unit.unshard(model_.shards(static_cast<size_t>(&unit - model_.units().data()), which));
}

void Runner::prefetch(ShardedUnit& unit, int32_t which) {
  unit.prefetch(model_.shards(static_cast<size_t>(&unit - model_.units().data()), which));
}

void Runner::unshard_block(int64_t layer, int32_t which) {
  for (ShardedUnit& unit : model_.block(layer)) unshard(unit, which);
}

void Runner::prefetch_block(int64_t layer, int32_t which) {
  for (ShardedUnit& unit : model_.block(layer)) prefetch(unit, which);
}

void Runner::prefetch_after(int64_t layer, int32_t which) {
  if (layer + 1 < model_.config().num_layers) return prefetch_block(layer + 1, which);
  prefetch(model_.head(), which);
}

void Runner::reshard_block(int64_t layer) {
  for (ShardedUnit& unit : model_.block(layer)) unit.reshard();
}

at::Tensor Runner::embed(const modeling::MicroBatch* batch, int32_t which) {
  ShardedUnit& unit = model_.embedding();
  unshard(unit, which);
  prefetch_block(0, which);
  const at::Tensor hidden = batch ? ends_.embed(*batch, unit.weights()[0]) : at::Tensor();
  if (!model_.config().tie_word_embeddings) unit.reshard();
  return hidden;
}

modeling::Residual Runner::run_block(const modeling::MicroBatch& batch, int64_t layer, const modeling::Residual& stream,
                                     int32_t which) {
  const auto lookup = [&](const std::string& name) {
    const at::Tensor frozen = model_.frozen(name, which);
    return frozen.defined() ? frozen : model_.block_weight(layer, name);
  };
  const modeling::LayerWeights weights = modeling::layer_weights(model_.config(), layer, lookup, experts_);
  modeling::BlockOptions block;
  block.linear.fp8 = options_.fp8;
  block.linear.fp8_casts = options_.fp8_casts;
  block.linear.batch_invariant = options_.batch_invariant;
  block.tp = options_.tp;
  const auto moe_run = [&](int64_t moe_layer) {
    modeling::MoeRun run;
    run.dispatcher = dispatcher_.get();
    if (options_.replay) options_.replay->apply(batch, moe_layer, run);
    return run;
  };
  return modeling::block_residual(model_.config(), layer, weights, stream, batch.rope, *batch.attention, block,
                                  moe_run);
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
  modeling::Residual stream{embed(batch, which), {}};
  for (int64_t layer = 0; layer < layers; ++layer) {
    unshard_block(layer, which);
    prefetch_after(layer, which);
    if (batch) stream = run_block(*batch, layer, stream, which);
    reshard_block(layer);
  }
  unshard(model_.head(), which);
  LogprobResult result;
  if (batch) result = ends_.outputs(*batch, stream.sum(), head_weights(), options);
  model_.head().reshard();
  model_.embedding().reshard();
  return result;
}

void Runner::train(const modeling::MicroBatch* batch, const modeling::LogprobOptions& options,
                   const modeling::LossGradient& loss, bool last) {
  const at::AutoGradMode with_grad(true);
  const int32_t which = HEXAD_WEIGHTS_CURRENT;
  modeling::Residual stream{embed(batch, which), {}};
  std::vector<BlockRecord> records = forward_blocks(batch, stream);
  modeling::Residual grads;
  grads.hidden = backward_head(batch, batch ? stream.sum() : at::Tensor(), options, loss, last);
  if (stream.delta.defined()) grads.delta = grads.hidden.to(stream.delta.scalar_type());
  stream = {};
  for (int64_t layer = model_.config().num_layers - 1; layer >= 0; --layer) {
    unshard_block(layer, which);
    if (layer > 0) prefetch_block(layer - 1, which);
    if (batch) grads = backward_block(*batch, layer, records[static_cast<size_t>(layer)], grads);
    reshard_block(layer);
    for (ShardedUnit& unit : model_.block(layer)) reduce(unit, last);
  }
  if (batch) ends_.embed_backward(*batch, grads.hidden, model_.embedding().grad_accumulator(0));
  reduce(model_.embedding(), last);
  if (reducing_) reducing_->finish_reduce();
  reducing_ = nullptr;
}

std::vector<Runner::BlockRecord> Runner::forward_blocks(const modeling::MicroBatch* batch, modeling::Residual& stream) {
  const int64_t layers = model_.config().num_layers;
  std::vector<BlockRecord> records(static_cast<size_t>(layers));
  for (int64_t layer = 0; layer < layers; ++layer) {
    unshard_block(layer, HEXAD_WEIGHTS_CURRENT);
    prefetch_after(layer, HEXAD_WEIGHTS_CURRENT);
    if (batch) {
      BlockRecord& record = records[static_cast<size_t>(layer)];
      record.input = leaves_of(stream);
      const at::AutoGradMode mode(!options_.activation_checkpointing);
      const modeling::Residual output = run_block(*batch, layer, record.input, HEXAD_WEIGHTS_CURRENT);
      if (!options_.activation_checkpointing) {
        record.output = output;
        // The graph has their sum.
        if (record.input.delta.defined()) modeling::free_storage(record.input.delta);
      }
      stream = {output.hidden.detach(), output.delta.detach()};
    }
    // The last block's backward comes next: its weights stay.
    if (layer + 1 < layers) reshard_block(layer);
  }
  return records;
}

at::Tensor Runner::backward_head(const modeling::MicroBatch* batch, const at::Tensor& hidden,
                                 const modeling::LogprobOptions& options, const modeling::LossGradient& loss,
                                 bool last) {
  ShardedUnit& unit = model_.head();
  unshard(unit, HEXAD_WEIGHTS_CURRENT);
  at::Tensor grad_hidden;
  if (batch) {
    const modeling::HeadRecord record = ends_.loss(*batch, hidden, head_weights(), options, loss);
    std::vector<at::Tensor> inputs = {record.input};
    inputs.insert(inputs.end(), unit.weights().begin(), unit.weights().end());
    const bool tied = model_.config().tie_word_embeddings;
    modeling::OfferedSums sums;
    model_.logits_unit().offer_sums(sums);
    if (tied) inputs.push_back(model_.embedding().weights()[0]);
    const std::vector<at::Tensor> results = modeling::head_gradients(record, inputs);
    grad_hidden = results[0].defined() ? results[0] : at::zeros_like(hidden);
    for (size_t i = 0; i < unit.weights().size(); ++i)
      if (results[i + 1].defined()) unit.add_grad(i, results[i + 1]);
    if (tied && results.back().defined()) model_.embedding().add_grad(0, results.back());
  }
  unit.reshard();
  model_.embedding().reshard();
  reduce(unit, last);
  return grad_hidden;
}

modeling::Residual Runner::backward_block(const modeling::MicroBatch& batch, int64_t layer, BlockRecord& record,
                                          const modeling::Residual& grads) {
  const modeling::Residual output =
      record.output.hidden.defined() ? record.output : run_block(batch, layer, record.input, HEXAD_WEIGHTS_CURRENT);
  std::vector<at::Tensor> inputs = {record.input.hidden};
  const bool with_delta = record.input.delta.defined();
  if (with_delta) inputs.push_back(record.input.delta);
  modeling::OfferedSums sums;
  for (ShardedUnit& unit : model_.block(layer)) {
    unit.offer_sums(sums);
    inputs.insert(inputs.end(), unit.weights().begin(), unit.weights().end());
  }
  const std::vector<at::Tensor> results =
      modeling::gradients({output.hidden, output.delta}, {grads.hidden, grads.delta}, inputs);
  size_t next = with_delta ? 2 : 1;
  for (ShardedUnit& unit : model_.block(layer)) {
    for (size_t i = 0; i < unit.weights().size(); ++i, ++next)
      if (results[next].defined()) unit.add_grad(i, results[next]);
  }
  record = {};
  return {results[0], with_delta ? results[1] : at::Tensor()};
}

void Runner::abandon() {
  for (ShardedUnit& unit : model_.units()) unit.abandon();
  reducing_ = nullptr;
}

void Runner::reduce(ShardedUnit& unit, bool last) {
  if (unit.stays().gradients && !last) return;
  // One reduce-scatter is under way while the next unit computes.
  if (reducing_) reducing_->finish_reduce();
  unit.start_reduce();
  reducing_ = &unit;
}

}  // namespace hexad::dtensor
