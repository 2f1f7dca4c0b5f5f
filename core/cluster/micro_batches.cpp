#include "core/cluster/micro_batches.hpp"

#include <algorithm>

#include "lib/base/error.hpp"

namespace hexad::cluster {

MicroBatches micro_batches(const data::Batch& batch, std::span<const protocol::MicroBatch> list,
                           const plugin::BackendPlugin& backend) {
  const hexad_backend_info& info = backend.info();
  const std::vector<std::string> names(info.inputs, info.inputs + info.num_inputs);
  MicroBatches result;
  for (const protocol::MicroBatch& entry : list) {
    result.views.emplace_back(batch.select(entry.rows), names, entry.padded_length, entry.dummy);
    result.pointers.push_back(result.views.back().get());
  }
  return result;
}

data::Axis axis_of_output(const std::string& name) {
  return name == "sequence_scores" ? data::Axis::sample : data::Axis::token;
}

ForwardOutputs::ForwardOutputs(const MicroBatches& parts, const std::vector<std::string>& names)
    : count_(names.size()) {
  for (const BatchView& part : parts.views) {
    auto& row = tensors_.emplace_back();
    for (const std::string& name : names) {
      const bool sample = axis_of_output(name) == data::Axis::sample;
      const data::Tensor values(data::DType::f32, {sample ? part.batch().size() : part.batch().tokens()});
      row.push_back(
          {name.c_str(), views_.emplace_back(values).get(), nullptr, sample ? HEXAD_AXIS_SAMPLE : HEXAD_AXIS_TOKEN, 0});
    }
    pointers_.push_back(row.data());
  }
}

std::vector<std::string> loss_outputs(const WorkerState& state) {
  const hexad_backend_info& info = state.backend->info();
  std::vector<std::string> outputs;
  for (const std::string& name : state.loss->differentiable_inputs()) {
    if (std::find(info.outputs, info.outputs + info.num_outputs, name) != info.outputs + info.num_outputs)
      outputs.push_back(name);
  }
  return outputs;
}

plugin::LossPlugin& need_loss(const WorkerState& state, const char* command) {
  if (!state.loss) fail(ErrorKind::worker, "'{}' needs a loss, and this worker was started without one", command);
  return *state.loss;
}

plugin::LossShape loss_shape(const protocol::LossBatch& whole, const BatchView& part) {
  const data::Batch& batch = part.batch();
  return {batch.size(),
          batch.tokens(),
          batch.cu_seqlens().data(),
          whole.global_valid_tokens,
          whole.global_valid_sequences,
          part.get()->padded_length};
}

double add_loss_metrics(WorkerState& state, const plugin::LossValue& value) {
  for (const plugin::LossMetric& metric : value.metrics) {
    if (metric.name == std::string_view("loss")) continue;  // the loss itself, counted once
    state.add_reported({metric.name, metric.value, metric.weight, metric.reduce});
  }
  return value.loss;
}

}  // namespace hexad::cluster
