#include "plugins/megatron/stage.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include "modeling/family/transformer.hpp"

namespace hexad::megatron {
namespace {

constexpr const char* kEmbeddingUnit = "embed";

// What lies in these units is there while this is.
class UnitsInUse {
 public:
  UnitsInUse(LocalWeights& weights, int32_t which, std::vector<std::string> units)
      : weights_(weights), which_(which), units_(std::move(units)) {
    for (const std::string& unit : units_) weights_.acquire(which_, unit);
  }
  ~UnitsInUse() {
    for (const std::string& unit : units_) weights_.release(which_, unit);
  }
  UnitsInUse(const UnitsInUse&) = delete;

 private:
  LocalWeights& weights_;
  int32_t which_;
  std::vector<std::string> units_;
};

}  // namespace

StageRunner::StageRunner(const Settings& settings, const Groups& groups, const model::Stage& stage,
                         LocalWeights& weights, GradientBuckets& gradients, Routers& routers, modeling::Fp8Casts& casts)
    : settings_(settings),
      tp_{groups.tp, settings.sequence_parallel, settings.token_runs},
      ends_(settings.model, tp_, groups.cp),
      stage_(stage),
      weights_(weights),
      gradients_(gradients),
      routers_(routers),
      casts_(casts),
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
  if (settings.moe.gather_tokens) {
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
  const auto lookup = [&](const std::string& name) { return weights_.leaf(which, name); };
  modeling::BlockOptions options;
  options.linear.fp8 = settings_.fp8;
  options.linear.fp8_casts = &casts_;
  options.linear.batch_invariant = settings_.batch_invariant;
  options.tp = tp_;
  options.recompute = settings_.recompute.modules;
  const auto moe_run = [&](int64_t moe_layer) {
    modeling::MoeRun run = routers_.run(moe_layer, batch);
    run.dispatcher = dispatcher_.get();
    return run;
  };
  return modeling::block_forward(settings_.model, layer,
                                 modeling::layer_weights(settings_.model, layer, lookup, experts_), hidden, batch.rope,
                                 *batch.attention, options, moe_run);
}

at::Tensor StageRunner::run_layers(const modeling::MicroBatch& batch, const model::Range& layers, at::Tensor hidden,
                                   int32_t which) {
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) hidden = run_block(batch, layer, hidden, which);
  return hidden;
}

at::Tensor StageRunner::forward(const modeling::MicroBatch& batch, const at::Tensor& input, int32_t which,
                                StageRecord* record) {
  at::Tensor hidden = stage_.embedding ? embed(batch, which) : input;
  for (size_t i = 0; i < units_.size(); ++i) {
    const LayerUnit& unit = units_[i];
    const UnitsInUse weights(weights_, which, layers_of(i));
    prefetch(which, i + 1);
    const bool keep_graph = record && !unit.runs_again;
    const at::AutoGradMode mode(keep_graph);
    if (record) record->parts.push_back({hidden.detach().requires_grad_(true), {}});
    const at::Tensor output = run_layers(batch, unit.layers, record ? record->parts.back().input : hidden, which);
    if (keep_graph) record->parts.back().output = output;
    hidden = output.detach();
  }
  return hidden;
}

at::Tensor StageRunner::embed(const modeling::MicroBatch& batch, int32_t which) {
  const UnitsInUse weights(weights_, which, {kEmbeddingUnit});
  return ends_.embed(batch, weights_.leaf(which, modeling::kEmbeddingName));
}

modeling::HeadWeights StageRunner::head_weights(int32_t which) {
  return {weights_.leaf(which, modeling::kFinalNormName),
          weights_.leaf(which, modeling::head_weight_name(settings_.model))};
}

modeling::LogprobResult StageRunner::outputs(const modeling::MicroBatch& batch, const at::Tensor& hidden, int32_t which,
                                             const modeling::LogprobOptions& options) {
  const UnitsInUse weights(weights_, which, head_units());
  return ends_.outputs(batch, hidden, head_weights(which), options);
}

void StageRunner::loss(const modeling::MicroBatch& batch, const at::Tensor& hidden,
                       const modeling::LogprobOptions& options, const modeling::LossGradient& gradient,
                       StageRecord& record) {
  const UnitsInUse weights(weights_, HEXAD_WEIGHTS_CURRENT, head_units());
  record.head = ends_.loss(batch, hidden, head_weights(HEXAD_WEIGHTS_CURRENT), options, gradient);
}

std::vector<at::Tensor> StageRunner::inputs(const at::Tensor& input, const Weights& weights) {
  std::vector<at::Tensor> result = {input};
  for (const LocalWeight* weight : weights)
    result.push_back(weights_.leaf(HEXAD_WEIGHTS_CURRENT, weight->info.hf_name));
  return result;
}

at::Tensor StageRunner::add_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& input,
                                      const Weights& weights) {
  for (size_t i = 0; i < weights.size(); ++i)
    if (gradients[i + 1].defined()) gradients_.add(*weights[i], gradients[i + 1]);
  return gradients[0].defined() ? gradients[0] : at::zeros_like(input);
}

void StageRunner::offer(const Weights& weights, modeling::OfferedSums& sums) {
  for (const LocalWeight* weight : weights) {
    const at::Tensor leaf = weights_.leaf(HEXAD_WEIGHTS_CURRENT, weight->info.hf_name);
    if (leaf.dim() == 2) sums.offer(leaf, gradients_.accumulator(*weight));
  }
}

at::Tensor StageRunner::backward(const modeling::MicroBatch& batch, StageRecord& record,
                                 const at::Tensor& output_grad) {
  at::Tensor grad = output_grad;
  if (stage_.loss) {
    const UnitsInUse used(weights_, HEXAD_WEIGHTS_CURRENT, head_units());
    modeling::OfferedSums sums;
    offer(head_weights_, sums);
    const at::Tensor& input = record.head.input;
    grad = add_gradients(modeling::head_gradients(record.head, inputs(input, head_weights_)), input, head_weights_);
    record.head = {};
    done(head_weights_);
  }
  for (size_t i = units_.size(); i-- > 0;) {
    StageRecord::Part& part = record.parts[i];
    const UnitsInUse used(weights_, HEXAD_WEIGHTS_CURRENT, layers_of(i));
    prefetch(HEXAD_WEIGHTS_CURRENT, i - 1);
    at::Tensor output = part.output;
    if (!output.defined()) {
      const at::AutoGradMode with_grad(true);
      output = run_layers(batch, units_[i].layers, part.input, HEXAD_WEIGHTS_CURRENT);
    }
    const Weights& weights = unit_weights_[i];
    modeling::OfferedSums sums;
    offer(weights, sums);
    grad = add_gradients(modeling::gradients({output}, {grad}, inputs(part.input, weights)), part.input, weights);
    part = {};
    done(weights);
  }
  if (stage_.embedding) {
    const LocalWeight& weight = *weights_.find(modeling::kEmbeddingName);
    ends_.embed_backward(batch, grad, gradients_.accumulator(weight));
    gradients_.done(weight);
  }
  return grad;
}

std::vector<std::string> StageRunner::layers_of(size_t unit) const {
  std::vector<std::string> names;
  for (int64_t layer = units_[unit].layers.begin; layer < units_[unit].layers.end; ++layer)
    names.push_back("layers." + std::to_string(layer));
  return names;
}

std::vector<std::string> StageRunner::head_units() const {
  std::vector<std::string> units = {"head"};
  if (settings_.model.tie_word_embeddings) units.push_back(kEmbeddingUnit);
  return units;
}

void StageRunner::prefetch(int32_t which, size_t unit) {
  if (!settings_.overlap_param_gather || unit >= units_.size()) return;
  for (const std::string& name : layers_of(unit)) weights_.prefetch(which, name);
}

void StageRunner::done(const Weights& weights) {
  for (const LocalWeight* weight : weights) gradients_.done(*weight);
}

void StageRunner::pass_forward(int32_t which) {
  if (stage_.embedding) const UnitsInUse used(weights_, which, {kEmbeddingUnit});
  for (size_t i = 0; i < units_.size(); ++i) {
    const UnitsInUse used(weights_, which, layers_of(i));
    prefetch(which, i + 1);
  }
  if (stage_.loss) const UnitsInUse used(weights_, which, head_units());
}

void StageRunner::pass_backward() {
  if (stage_.loss) {
    const UnitsInUse used(weights_, HEXAD_WEIGHTS_CURRENT, head_units());
    done(head_weights_);
  }
  for (size_t i = units_.size(); i-- > 0;) {
    const UnitsInUse used(weights_, HEXAD_WEIGHTS_CURRENT, layers_of(i));
    prefetch(HEXAD_WEIGHTS_CURRENT, i - 1);
    done(unit_weights_[i]);
  }
  if (stage_.embedding) gradients_.done(*weights_.find(modeling::kEmbeddingName));
}

void StageRunner::count_places(std::vector<int64_t>& places) const {
  const auto count = [&](const LocalWeight* weight) { ++places[weights_.index(*weight)]; };
  for (const LocalWeight* weight : head_weights_) count(weight);
  for (const Weights& unit : unit_weights_)
    for (const LocalWeight* weight : unit) count(weight);
  if (stage_.embedding) count(weights_.find(modeling::kEmbeddingName));
}

}  // namespace hexad::megatron
