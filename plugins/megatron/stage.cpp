#include "plugins/megatron/stage.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include "modeling/family/transformer.hpp"

namespace hexad::megatron {

StageRunner::StageRunner(const Settings& settings, const Groups& groups, const modeling::layout::Stage& stage,
                         LocalWeights& weights)
    : settings_(settings),
      tp_{groups.tp, settings.sequence_parallel, settings.token_runs},
      ends_(settings.model, tp_, groups.cp),
      stage_(stage),
      weights_(weights),
      units_(layer_units(settings.recompute, stage.layers)) {
  for (const LayerUnit& unit : units_) {
    unit_weights_.emplace_back();
    for (int64_t layer = unit.layers.begin; layer < unit.layers.end; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      for (const LocalWeight& weight : weights.weights()) {
        if (weight.info.trainable && weight.info.hf_name.starts_with(prefix)) unit_weights_.back().push_back(&weight);
      }
    }
  }
  if (stage.loss)
    head_weights_ = {weights.find(modeling::kFinalNormName), weights.find(modeling::head_weight_name(settings.model))};
  if (!settings.model.moe) return;
  const modeling::ExpertGroup ranks{groups.tp_ep, settings.expert_tensor()};
  experts_ = ranks.local(settings.model.moe->num_experts);
  if (!settings.dispatches()) return;
  if (settings.gather_tokens) {
    dispatcher_ = std::make_unique<modeling::AllGatherDispatcher>(ranks);
  } else {
    dispatcher_ = std::make_unique<modeling::AllToAllDispatcher>(ranks);
  }
}

int64_t StageRunner::rows(const modeling::MicroBatch& batch) const {
  return batch.ids.size(0) / (tp_.shards_tokens() ? tp_.group.size() : 1);
}

at::Tensor StageRunner::run_block(const modeling::MicroBatch& batch, int64_t layer, const at::Tensor& hidden,
                                  int32_t which) {
  const LocalWeights::Leaves& leaves = weights_.leaves(which);
  const auto lookup = [&](const std::string& name) { return leaves.at(name); };
  modeling::BlockOptions options;
  options.tp = tp_;
  options.recompute = settings_.recompute.modules;
  const auto moe_run = [&](int64_t) {
    modeling::MoeRun run;
    run.dispatcher = dispatcher_.get();
    return run;
  };
  return modeling::block_forward(settings_.model, layer,
                                 modeling::layer_weights(settings_.model, layer, lookup, experts_), hidden, batch.rope,
                                 *batch.attention, options, moe_run);
}

at::Tensor StageRunner::run_layers(const modeling::MicroBatch& batch, const modeling::layout::Range& layers,
                                   at::Tensor hidden, int32_t which) {
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) hidden = run_block(batch, layer, hidden, which);
  return hidden;
}

at::Tensor StageRunner::forward(const modeling::MicroBatch& batch, const at::Tensor& input, int32_t which,
                                StageRecord* record) {
  at::Tensor hidden =
      stage_.embedding ? ends_.embed(batch, weights_.leaves(which).at(modeling::kEmbeddingName)) : input;
  for (const LayerUnit& unit : units_) {
    const bool keep_graph = record && !unit.runs_again;
    const at::AutoGradMode mode(keep_graph);
    if (record) record->parts.push_back({hidden.detach().requires_grad_(true), {}});
    const at::Tensor output = run_layers(batch, unit.layers, record ? record->parts.back().input : hidden, which);
    if (keep_graph) record->parts.back().output = output;
    hidden = output.detach();
  }
  return hidden;
}

modeling::HeadWeights StageRunner::head_weights(int32_t which) {
  const LocalWeights::Leaves& leaves = weights_.leaves(which);
  return {leaves.at(modeling::kFinalNormName), leaves.at(modeling::head_weight_name(settings_.model))};
}

modeling::LogprobResult StageRunner::outputs(const modeling::MicroBatch& batch, const at::Tensor& hidden, int32_t which,
                                             const modeling::LogprobOptions& options) {
  return ends_.outputs(batch, hidden, head_weights(which), options);
}

void StageRunner::loss(const modeling::MicroBatch& batch, const at::Tensor& hidden,
                       const modeling::LogprobOptions& options, const modeling::LossGradient& gradient,
                       StageRecord& record) {
  record.head = ends_.loss(batch, hidden, head_weights(HEXAD_WEIGHTS_CURRENT), options, gradient);
}

std::vector<at::Tensor> StageRunner::inputs(const at::Tensor& input, const Weights& weights) {
  const LocalWeights::Leaves& leaves = weights_.leaves(HEXAD_WEIGHTS_CURRENT);
  std::vector<at::Tensor> result = {input};
  for (const LocalWeight* weight : weights) result.push_back(leaves.at(weight->info.hf_name));
  return result;
}

at::Tensor StageRunner::add_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& input,
                                      const Weights& weights) {
  for (size_t i = 0; i < weights.size(); ++i)
    if (gradients[i + 1].defined()) weights_.add_gradient(*weights[i], gradients[i + 1]);
  return gradients[0].defined() ? gradients[0] : at::zeros_like(input);
}

at::Tensor StageRunner::backward(const modeling::MicroBatch& batch, StageRecord& record,
                                 const at::Tensor& output_grad) {
  at::Tensor grad = output_grad;
  if (stage_.loss) {
    const at::Tensor& input = record.head.input;
    grad = add_gradients(modeling::head_gradients(record.head, inputs(input, head_weights_)), input, head_weights_);
    record.head = {};
  }
  for (size_t i = units_.size(); i-- > 0;) {
    StageRecord::Part& part = record.parts[i];
    at::Tensor output = part.output;
    if (!output.defined()) {
      const at::AutoGradMode with_grad(true);
      output = run_layers(batch, units_[i].layers, part.input, HEXAD_WEIGHTS_CURRENT);
    }
    const Weights& weights = unit_weights_[i];
    grad = add_gradients(modeling::gradients({output}, {grad}, inputs(part.input, weights)), part.input, weights);
    part = {};
  }
  if (stage_.embedding) {
    const LocalWeight& weight = *weights_.find(modeling::kEmbeddingName);
    ends_.embed_backward(batch, grad, weights_.slice_of(weights_.gradients(), weight));
  }
  return grad;
}

}  // namespace hexad::megatron
