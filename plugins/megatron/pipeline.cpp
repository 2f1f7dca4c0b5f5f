#include "plugins/megatron/pipeline.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

namespace hexad::megatron {
namespace {

namespace layout = modeling::layout;
using Kind = layout::PipelineEvent::Kind;

// Takes what an earlier event left.
template <typename Map>
auto take(Map& map, const typename Map::key_type& key) {
  auto node = map.extract(key);
  return node.empty() ? typename Map::mapped_type() : std::move(node.mapped());
}

}  // namespace

Pipeline::Pipeline(const Settings& settings, const Groups& groups, const layout::LayerPlacement& placement,
                   LocalWeights& weights, at::Device device)
    : settings_(settings), groups_(groups), device_(device) {
  for (const layout::Stage& stage : placement.stages[static_cast<size_t>(groups.at.pp)])
    stages_.emplace_back(settings, groups, stage, weights);
}

bool Pipeline::has_loss() const { return stages_.back().stage().loss; }

layout::PipelineSchedule Pipeline::schedule(size_t microbatches, bool forward_only) const {
  layout::PipelineOptions options;
  options.ranks = ranks();
  options.chunks = settings_.sizes.virtual_pipeline;
  options.microbatches = static_cast<int64_t>(microbatches);
  options.forward_only = forward_only;
  return layout::pipeline_schedule(options, groups_.at.pp);
}

// Room for the hidden states that arrive for a unit. The residual stream is fp32 at least.
at::Tensor Pipeline::hidden_of(const Run& run, const Unit& unit) const {
  const int64_t rows = stages_[static_cast<size_t>(unit.first)].rows(*run.batches[static_cast<size_t>(unit.second)]);
  const at::ScalarType dtype = c10::elementSize(settings_.compute_dtype) < 4 ? at::kFloat : settings_.compute_dtype;
  return at::empty({rows, settings_.model.hidden_size}, at::TensorOptions(device_).dtype(dtype));
}

void Pipeline::exchange(Run& run, const layout::PipelineEvent& event) {
  const int64_t next = (groups_.at.pp + 1) % ranks(), previous = (groups_.at.pp + ranks() - 1) % ranks();
  std::vector<modeling::Group::Message> messages;
  const auto unit_of = [&](const std::optional<layout::PipelineUnit>& unit) -> std::optional<Unit> {
    if (!unit || !run.batches[static_cast<size_t>(unit->microbatch)]) return std::nullopt;
    return Unit{unit->chunk, unit->microbatch};
  };
  // A message is named by the stage that receives it, its micro-batch and its direction.
  const auto tag = [&](int64_t receiving_stage, const Unit& unit, bool gradient) {
    const auto batches = static_cast<int64_t>(run.batches.size());
    return static_cast<int32_t>((receiving_stage * batches + unit.second) * 2 + gradient);
  };
  const auto receive = [&](std::map<Unit, at::Tensor>& into, const Unit& unit, int64_t from, bool gradient) {
    const at::Tensor room = into[unit] = hidden_of(run, unit);
    messages.push_back({room, from, tag(stage_index(unit), unit, gradient), true});
  };
  const auto send = [&](std::map<Unit, at::Tensor>& from, const Unit& unit, int64_t to, bool gradient) {
    const at::Tensor message = take(from, unit).contiguous();
    messages.push_back({message, to, tag(stage_index(unit) + (gradient ? -1 : 1), unit, gradient), false});
  };
  if (const auto unit = unit_of(event.recv_prev)) receive(run.inputs, *unit, previous, false);
  if (const auto unit = unit_of(event.recv_next)) receive(run.output_grads, *unit, next, true);
  if (const auto unit = unit_of(event.send_next)) send(run.outputs, *unit, next, false);
  if (const auto unit = unit_of(event.send_prev)) send(run.input_grads, *unit, previous, true);
  groups_.pp.exchange(messages).wait();
}

void Pipeline::forward(const MicroBatches& batches, int32_t which, const modeling::LogprobOptions& options,
                       const Outputs& outputs) {
  const at::NoGradGuard no_grad;
  if (batches.empty()) return;
  Run run{batches, {}, {}, {}, {}, {}};
  for (const layout::PipelineEvent& event : schedule(batches.size(), /*forward_only=*/true)) {
    if (event.kind == Kind::exchange) exchange(run, event);
    if (event.kind != Kind::forward || !batches[static_cast<size_t>(event.unit.microbatch)]) continue;
    const Unit unit{event.unit.chunk, event.unit.microbatch};
    const modeling::MicroBatch& batch = *batches[static_cast<size_t>(unit.second)];
    StageRunner& stage = stages_[static_cast<size_t>(unit.first)];
    const at::Tensor hidden = stage.forward(batch, take(run.inputs, unit), which, nullptr);
    if (stage.stage().loss) {
      outputs(unit.second, stage.outputs(batch, hidden, which, options));
    } else {
      run.outputs[unit] = hidden;
    }
  }
}

void Pipeline::train(const MicroBatches& batches, const modeling::LogprobOptions& options, const Loss& loss) {
  if (batches.empty()) return;
  Run run{batches, {}, {}, {}, {}, {}};
  for (const layout::PipelineEvent& event : schedule(batches.size(), /*forward_only=*/false)) {
    if (event.kind == Kind::exchange) exchange(run, event);
    const bool computes = event.kind == Kind::forward || event.kind == Kind::backward;
    if (!computes || !batches[static_cast<size_t>(event.unit.microbatch)]) continue;
    const Unit unit{event.unit.chunk, event.unit.microbatch};
    const modeling::MicroBatch& batch = *batches[static_cast<size_t>(unit.second)];
    StageRunner& stage = stages_[static_cast<size_t>(unit.first)];
    StageRecord& record = run.records[unit];
    if (event.kind == Kind::forward) {
      const at::Tensor hidden = stage.forward(batch, take(run.inputs, unit), HEXAD_WEIGHTS_CURRENT, &record);
      if (stage.stage().loss) {
        stage.loss(
            batch, hidden, options, [&](const modeling::LogprobResult& outputs) { return loss(unit.second, outputs); },
            record);
      } else {
        run.outputs[unit] = hidden;
      }
    } else {
      const at::Tensor grad = stage.backward(batch, record, take(run.output_grads, unit));
      run.records.erase(unit);
      if (!stage.stage().embedding) run.input_grads[unit] = grad;
    }
  }
}

}  // namespace hexad::megatron
