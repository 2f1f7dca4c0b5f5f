// Commands on the training backend: forward (log-probs), train (forward and backward), step (optimizer).
#include <cmath>

#include "core/cluster/micro_batches.hpp"
#include "core/cluster/policy_mismatch.hpp"
#include "lib/base/error.hpp"

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

}  // namespace

namespace command {

protocol::Forward::Reply forward(WorkerState& state, const protocol::Forward& forward) {
  plugin::BackendPlugin& backend = state.need_backend("forward");
  const data::Batch& batch = forward.batch;
  const MicroBatches parts = micro_batches(batch, forward.micro_batches, backend);
  const std::vector<std::string>& names = forward.outputs;

  // Outputs of all micro-batches first, in the order of their rows; then back to the order that was sent.
  const ForwardOutputs outputs(parts, names);
  const plugin::LogitTransform unfiltered = {.temperature = state.transform.temperature};
  backend.forward(state.context(), forward.which, parts.pointers, outputs.get(), static_cast<int64_t>(names.size()),
                  forward.filters ? state.transform : unfiltered);

  protocol::Forward::Reply reply{data::Batch::of_lengths(batch.lengths())};
  for (size_t k = 0; k < names.size(); ++k) {
    data::Tensor column(data::DType::f32, {batch.tokens()});
    const auto out = column.span<float>();
    for (size_t i = 0; i < forward.micro_batches.size(); ++i) {
      const auto values = outputs.at(i, k).span<float>();
      size_t offset = 0;
      for (const int64_t row : forward.micro_batches[i].rows) {
        std::copy_n(values.begin() + offset, batch.length(row), out.begin() + batch.cu_seqlens()[row]);
        offset += batch.length(row);
      }
    }
    reply.outputs.set(names[k], column, data::Axis::token);
  }
  return reply;
}

protocol::LossReply train(WorkerState& state, const protocol::Train& train) {
  plugin::BackendPlugin& backend = state.need_backend("train");
  plugin::LossPlugin& loss = need_loss(state, "train");
  const MicroBatches parts = micro_batches(train.batch, train.micro_batches, backend);
  const std::vector<std::string> outputs = loss_outputs(state);

  // A loss on the GPU is read when all micro-batches are under way: nothing before waits for the device.
  std::vector<plugin::PendingLoss> pending;
  PolicyMismatch mismatch(loss, train.batch, train.global_valid_tokens);
  int64_t tokens = 0;
  const auto compute = [&](int64_t index, std::span<const hexad_named_tensor> made, std::span<DLTensor* const> grads) {
    const BatchView& part = parts.views.at(index);
    const ColumnViews columns(part.batch());
    plugin::PendingLoss computed = loss.enqueue(state.context(), loss_shape(train, part), columns.get(), made, grads);
    if (part.get()->is_dummy || !backend.info().counts_loss) return;
    pending.push_back(std::move(computed));
    mismatch.keep(part, made);
    tokens += part.batch().tokens();
    state.tell({"policy_training", index + 1, static_cast<int64_t>(parts.views.size()), tokens});
  };
  backend.train(state.context(), parts.pointers, outputs, compute, state.transform);
  double total = 0;
  for (const plugin::PendingLoss& computed : pending) total += add_loss_metrics(state, computed.read());
  mismatch.add_to(state.metrics);
  state.metrics.add("loss", total, 1, plugin::ReduceAs::sum);
  return {state.metrics};
}

protocol::Step::Reply step(WorkerState& state, const protocol::Step& step) {
  const hexad_step_stats stats = state.need_backend("step").step(
      state.context(), step.lr, step.weight_decay.value_or(std::nan("")), step.max_grad_norm, step.discard);
  add_memory(state);
  return {.metrics = state.metrics,
          .grad_norm = std::isfinite(stats.grad_norm) ? std::optional<double>(stats.grad_norm) : std::nullopt,
          .skipped = stats.skipped != 0};
}

}  // namespace command
}  // namespace hexad::cluster
