#include "plugins/megatron/pipeline.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include <map>

namespace hexad::megatron {
namespace {

namespace layout = modeling::layout;
using Kind = layout::PipelineEvent::Kind;

using Travels = modeling::StageLinks::Kind;

bool computes(const layout::PipelineEvent& event) {
  return event.kind == Kind::forward || event.kind == Kind::backward;
}

// The micro-batch of an event that computes; null: it has no tokens.
const modeling::MicroBatch* batch_of(const MicroBatches& batches, const layout::PipelineEvent& event) {
  const std::optional<modeling::MicroBatch>& batch = batches[static_cast<size_t>(event.unit.microbatch)];
  return batch ? &*batch : nullptr;
}

}  // namespace

Pipeline::Pipeline(const Settings& settings, const Groups& groups, const model::LayerPlacement& placement,
                   LocalWeights& weights, GradientBuckets& gradients, Routers& routers, modeling::Fp8Casts& casts,
                   at::Device device)
    : settings_(settings), groups_(groups), gradients_(gradients), places_(weights.weights().size()), device_(device) {
  for (const model::Stage& stage : placement.stages[static_cast<size_t>(groups.at.pp)])
    stages_.emplace_back(settings, groups, stage, weights, gradients, routers, casts);
  for (const StageRunner& stage : stages_) stage.count_places(places_);
}

bool Pipeline::has_loss() const { return stages_.back().stage().loss; }

layout::PipelineSchedule Pipeline::schedule(size_t microbatches, bool forward_only) const {
  layout::PipelineOptions options;
  options.ranks = settings_.sizes.pipeline;
  options.chunks = settings_.sizes.virtual_pipeline;
  options.microbatches = static_cast<int64_t>(microbatches);
  if (settings_.stage_group) {
    // What packing or log-probs leave may be too few micro-batches for the group: then that of the stages.
    const int64_t rest = options.microbatches % *settings_.stage_group;
    const bool fits = *settings_.stage_group <= options.microbatches && (rest == 0 || rest >= options.ranks);
    if (fits) options.group = settings_.stage_group;
  }
  options.forward_only = forward_only;
  options.overlap = settings_.overlap_stages;
  return layout::pipeline_schedule(options, groups_.at.pp);
}

modeling::StageLinks Pipeline::links(const MicroBatches& batches) const {
  modeling::StageLinks::Options options;
  options.microbatches = static_cast<int64_t>(batches.size());
  options.overlap = settings_.overlap_stages;
  options.batch = settings_.batch_stages;
  // The residual stream is fp32 at least.
  const at::ScalarType dtype = c10::elementSize(settings_.compute_dtype) < 4 ? at::kFloat : settings_.compute_dtype;
  options.room = [this, &batches, dtype](const layout::PipelineUnit& unit) -> at::Tensor {
    const std::optional<modeling::MicroBatch>& batch = batches[static_cast<size_t>(unit.microbatch)];
    if (!batch) return {};
    const int64_t rows = stages_[static_cast<size_t>(unit.chunk)].rows(*batch);
    return at::empty({rows, settings_.model.hidden_size}, at::TensorOptions(device_).dtype(dtype));
  };
  return {groups_.pp, std::move(options)};
}

void Pipeline::forward(const MicroBatches& batches, int32_t which, const modeling::LogprobOptions& options,
                       const Outputs& outputs) {
  const at::NoGradGuard no_grad;
  if (batches.empty()) return;
  modeling::StageLinks links = this->links(batches);
  for (const layout::PipelineEvent& event : schedule(batches.size(), /*forward_only=*/true)) {
    if (event.kind == Kind::exchange) links.exchange(event);
    if (!computes(event)) continue;
    const modeling::MicroBatch* const batch = batch_of(batches, event);
    StageRunner& stage = this->stage(event.unit);
    if (!batch) {
      stage.pass_forward(which);
      continue;
    }
    const at::Tensor hidden = stage.forward(*batch, links.take(Travels::activation, event.unit), which, nullptr);
    if (stage.stage().loss) {
      outputs(event.unit.microbatch, stage.outputs(*batch, hidden, which, options));
    } else {
      links.give(Travels::activation, event.unit, hidden);
    }
  }
  links.finish();
}

void Pipeline::train(const MicroBatches& batches, const modeling::LogprobOptions& options, const Loss& loss) {
  gradients_.begin(static_cast<int64_t>(batches.size()), places_);
  if (batches.empty()) return;
  modeling::StageLinks links = this->links(batches);
  std::map<std::pair<int32_t, int32_t>, StageRecord> records;  // by chunk and micro-batch
  for (const layout::PipelineEvent& event : schedule(batches.size(), /*forward_only=*/false)) {
    if (event.kind == Kind::exchange) links.exchange(event);
    if (!computes(event)) continue;
    const modeling::MicroBatch* const batch = batch_of(batches, event);
    const auto& [chunk, microbatch] = event.unit;
    StageRunner& stage = this->stage(event.unit);
    if (!batch) {
      event.kind == Kind::forward ? stage.pass_forward(HEXAD_WEIGHTS_CURRENT) : stage.pass_backward();
      continue;
    }
    if (event.kind == Kind::forward) {
      StageRecord& record = records[{chunk, microbatch}];
      const at::Tensor hidden =
          stage.forward(*batch, links.take(Travels::activation, event.unit), HEXAD_WEIGHTS_CURRENT, &record);
      if (stage.stage().loss) {
        const auto gradient = [&, index = microbatch](const modeling::LogprobResult& made) {
          return loss(index, made);
        };
        stage.loss(*batch, hidden, options, gradient, record);
      } else {
        links.give(Travels::activation, event.unit, hidden);
      }
    } else {
      auto record = records.extract({chunk, microbatch});
      const at::Tensor grad = stage.backward(*batch, record.mapped(), links.take(Travels::gradient, event.unit));
      if (!stage.stage().embedding) links.give(Travels::gradient, event.unit, grad);
    }
  }
  links.finish();
}

}  // namespace hexad::megatron
