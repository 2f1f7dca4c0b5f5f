// Commands on the training backend: forward (log-probs), train (forward and backward), step (optimizer).
#include <cmath>

#include "lib/base/error.hpp"
#include "core/cluster/micro_batches.hpp"

namespace hexad::cluster {
namespace {

// What the rank holds after an update, and all that is used of its GPU; a run's memory is flat when these are.
void add_memory(WorkerState& state) {
  if (!state.backend->has_memory()) return;
  const hexad_memory_stats stats = state.backend->memory(state.context());
  constexpr double kGiB = 1 << 30;
  state.metrics.add("memory_allocated_gib", static_cast<double>(stats.allocated_bytes) / kGiB, 1,
                    plugin::ReduceAs::max);
  state.metrics.add("memory_reserved_gib", static_cast<double>(stats.reserved_bytes) / kGiB, 1, plugin::ReduceAs::max);
  if (state.device.device_type != kDLCUDA) return;
  const auto used = static_cast<double>(state.runtime->cuda_bytes_used(state.device.device_id));
  state.metrics.add("memory_used_gib", used / kGiB, 1, plugin::ReduceAs::max);
}

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace

namespace command {

Message forward(WorkerState& state, const Message& message) {
  plugin::BackendPlugin& backend = state.need_backend("forward");
  const data::Batch batch = message.batch("batch");
  const MicroBatches parts = micro_batches(message, batch, backend);
  const auto names = message.header.at("outputs").get<std::vector<std::string>>();

  // Outputs of all micro-batches first, in the order of their rows; then back to the order that was sent.
  const ForwardOutputs outputs(parts, names);
  const int32_t which = message.header.at("which");
  const plugin::LogitTransform unfiltered = {.temperature = state.transform.temperature};
  backend.forward(state.context(), which, parts.pointers, outputs.get(), static_cast<int64_t>(names.size()),
                  which == HEXAD_WEIGHTS_REFERENCE ? unfiltered : state.transform);

  data::Batch result = data::Batch::of_lengths(batch.lengths());
  for (size_t k = 0; k < names.size(); ++k) {
    data::Tensor column(data::DType::f32, {batch.tokens()});
    const auto out = column.span<float>();
    size_t part_index = 0;
    for (const Json& entry : message.header.at("micro_batches")) {
      const auto values = outputs.at(part_index, k).span<float>();
      size_t offset = 0;
      for (const Json& row : entry.at("rows")) {
        const int64_t index = row.get<int64_t>();
        std::copy_n(values.begin() + offset, batch.length(index), out.begin() + batch.cu_seqlens()[index]);
        offset += batch.length(index);
      }
      ++part_index;
    }
    result.set(names[k], column, data::Axis::token);
  }
  Message answer;
  answer.put("outputs", result);
  return answer;
}

Message train(WorkerState& state, const Message& message) {
  plugin::BackendPlugin& backend = state.need_backend("train");
  plugin::LossPlugin& loss = need_loss(state, "train");
  const data::Batch batch = message.batch("batch");
  const MicroBatches parts = micro_batches(message, batch, backend);
  const std::vector<std::string> outputs = loss_outputs(state);

  // A loss on the GPU is read when all micro-batches are under way: nothing before waits for the device.
  std::vector<plugin::PendingLoss> pending;
  const auto compute = [&](int64_t index, std::span<const hexad_named_tensor> made, std::span<DLTensor* const> grads) {
    const BatchView& part = parts.views.at(index);
    const ColumnViews columns(part.batch());
    plugin::PendingLoss computed = loss.enqueue(state.context(), loss_shape(message, part), columns.get(), made, grads);
    if (!part.get()->is_dummy && backend.info().counts_loss) pending.push_back(std::move(computed));
  };
  backend.train(state.context(), parts.pointers, outputs, compute, state.transform);
  double total = 0;
  for (const plugin::PendingLoss& computed : pending) total += add_loss_metrics(state, computed.read());
  state.metrics.add("loss", total, 1, plugin::ReduceAs::sum);
  Message answer;
  answer.header["metrics"] = state.metrics.to_json();
  return answer;
}

Message step(WorkerState& state, const Message& message) {
  const Json& header = message.header;
  const double weight_decay =
      header.at("weight_decay").is_null() ? std::nan("") : header.at("weight_decay").get<double>();
  const hexad_step_stats stats = state.need_backend("step").step(
      state.context(), header.at("lr"), weight_decay, header.at("max_grad_norm"), header.at("discard").get<bool>());
  add_memory(state);
  Message answer;
  answer.header["metrics"] = state.metrics.to_json();
  answer.header["grad_norm"] = json_number(stats.grad_norm);
  answer.header["skipped"] = stats.skipped != 0;
  return answer;
}

}  // namespace command
}  // namespace hexad::cluster
