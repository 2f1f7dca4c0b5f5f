#include "plugins/megatron/stage.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>
#include <torch/csrc/autograd/autograd.h>

#include "modeling/backend/token_outputs.hpp"
#include "modeling/family/transformer.hpp"

namespace hexad::megatron {
using modeling::LogprobResult;

StageRunner::StageRunner(const Settings& settings, const Groups& groups, const modeling::layout::Stage& stage,
                         LocalWeights& weights)
    : settings_(settings),
      tp_{groups.tp, settings.sequence_parallel},
      context_(groups.cp),
      stage_(stage),
      weights_(weights) {
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

modeling::VocabShard StageRunner::vocab() const {
  return modeling::VocabShard::of(settings_.model.vocab_size, tp_.group);
}

at::Tensor StageRunner::embed(const modeling::MicroBatch& batch, int32_t which) {
  const at::NoGradGuard no_grad;  // its backward is an index_add into the gradient
  const at::Tensor& rows = weights_.leaves(which).at(modeling::kEmbeddingName);
  return modeling::vocab_parallel_embed(rows, vocab().rows.begin, batch.ids, tp_);
}

at::Tensor StageRunner::run_block(const modeling::MicroBatch& batch, int64_t layer, const at::Tensor& hidden,
                                  int32_t which) {
  const LocalWeights::Leaves& leaves = weights_.leaves(which);
  const auto lookup = [&](const std::string& name) { return leaves.at(name); };
  modeling::LinearOptions options;
  options.tp = tp_;
  const auto moe_run = [&](int64_t) {
    modeling::MoeRun run;
    run.dispatcher = dispatcher_.get();
    return run;
  };
  return modeling::block_forward(settings_.model, layer,
                                 modeling::layer_weights(settings_.model, layer, lookup, experts_), hidden, batch.rope,
                                 *batch.attention, options, moe_run);
}

at::Tensor StageRunner::forward(const modeling::MicroBatch& batch, const at::Tensor& input, int32_t which,
                                StageRecord* record) {
  at::Tensor hidden = stage_.embedding ? embed(batch, which) : input;
  for (int64_t layer = stage_.layers.begin; layer < stage_.layers.end; ++layer) {
    const bool keep_graph = record && !settings_.recompute_blocks;
    const at::AutoGradMode mode(keep_graph);
    if (record) record->blocks.push_back({hidden.detach().requires_grad_(true), {}});
    const at::Tensor output = run_block(batch, layer, record ? record->blocks.back().input : hidden, which);
    if (keep_graph) record->blocks.back().output = output;
    hidden = output.detach();
  }
  return hidden;
}

LogprobResult StageRunner::outputs(const modeling::MicroBatch& batch, const at::Tensor& hidden, int32_t which,
                                   const modeling::LogprobOptions& options) {
  return modeling::to_tokens(batch, head(batch, hidden, which, options), context_);
}

LogprobResult StageRunner::head(const modeling::MicroBatch& batch, const at::Tensor& hidden, int32_t which,
                                const modeling::LogprobOptions& wanted) {
  const LocalWeights::Leaves& leaves = weights_.leaves(which);
  const at::Tensor normed = modeling::final_norm(settings_.model, leaves.at(modeling::kFinalNormName), hidden);
  const at::Tensor whole =
      tp_.shards_tokens() ? modeling::gather_tokens(normed, tp_.group) : modeling::copy_to_ranks(normed, tp_.group);
  const at::Tensor tokens = batch.token_rows.defined() ? whole.index_select(0, batch.token_rows) : whole;
  modeling::LogprobOptions options = wanted;
  options.vocab = vocab();
  const at::Tensor& weight = leaves.at(modeling::head_weight_name(settings_.model));
  return modeling::head_logprobs(tokens, weight, batch.targets, options);
}

void StageRunner::loss(const modeling::MicroBatch& batch, const at::Tensor& hidden,
                       const modeling::LogprobOptions& options, const LossGradient& gradient, StageRecord& record) {
  const at::AutoGradMode with_grad(true);
  record.head_input = hidden.detach().requires_grad_(true);
  record.outputs = head(batch, record.head_input, HEXAD_WEIGHTS_CURRENT, options);
  record.output_grads = modeling::to_rows(batch, gradient(modeling::to_tokens(batch, record.outputs, context_)));
}

at::Tensor StageRunner::take_gradients(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& grads,
                                       const at::Tensor& input, const std::vector<std::string>& names) {
  std::vector<at::Tensor> inputs = {input};
  for (const std::string& name : names) inputs.push_back(weights_.leaves(HEXAD_WEIGHTS_CURRENT).at(name));
  std::vector<at::Tensor> results(inputs.size());
  if (!outputs.empty())
    results = torch::autograd::grad(outputs, inputs, grads, /*retain_graph=*/false, /*create_graph=*/false,
                                    /*allow_unused=*/true);
  for (size_t i = 0; i < names.size(); ++i)
    if (results[i + 1].defined()) weights_.add_gradient(names[i], results[i + 1]);
  return results[0].defined() ? results[0] : at::zeros_like(input);
}

at::Tensor StageRunner::backward_head(StageRecord& record) {
  std::vector<at::Tensor> outputs, grads;
  const auto add = [&](const at::Tensor& output, const at::Tensor& grad) {
    if (output.defined() && grad.defined()) outputs.push_back(output), grads.push_back(grad);
  };
  add(record.outputs.logprobs, record.output_grads.logprobs);
  add(record.outputs.entropy, record.output_grads.entropy);
  add(record.outputs.unfiltered_logprobs, record.output_grads.unfiltered_logprobs);
  return take_gradients(outputs, grads, record.head_input,
                        {modeling::kFinalNormName, modeling::head_weight_name(settings_.model)});
}

at::Tensor StageRunner::backward(const modeling::MicroBatch& batch, StageRecord& record,
                                 const at::Tensor& output_grad) {
  at::Tensor grad = stage_.loss ? backward_head(record) : output_grad;
  for (int64_t layer = stage_.layers.end - 1; layer >= stage_.layers.begin; --layer) {
    StageRecord::Block& block = record.blocks[static_cast<size_t>(layer - stage_.layers.begin)];
    at::Tensor output = block.output;
    if (!output.defined()) {
      const at::AutoGradMode with_grad(true);
      output = run_block(batch, layer, block.input, HEXAD_WEIGHTS_CURRENT);
    }
    std::vector<std::string> names;
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const LocalWeight& weight : weights_.weights())
      if (weight.info.hf_name.starts_with(prefix)) names.push_back(weight.info.hf_name);
    grad = take_gradients({output}, {grad}, block.input, names);
    block = {};
  }
  if (stage_.embedding) backward_embedding(batch, grad);
  return grad;
}

void StageRunner::backward_embedding(const modeling::MicroBatch& batch, const at::Tensor& grad) {
  const at::NoGradGuard no_grad;
  at::Tensor whole = grad.to(at::kFloat);
  if (tp_.shards_tokens()) whole = modeling::gather_tokens(whole, tp_.group);
  const LocalWeight& weight = *weights_.find(modeling::kEmbeddingName);
  const at::Tensor rows = vocab().local(batch.ids), mine = rows.ge(0).nonzero().squeeze(1);
  weights_.slice_of(weights_.gradients(), weight)
      .index_add_(0, rows.index_select(0, mine), whole.index_select(0, mine));
}

}  // namespace hexad::megatron
