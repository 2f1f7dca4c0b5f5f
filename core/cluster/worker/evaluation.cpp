// The command `evaluate`: the loss of a batch and its metrics, with nothing learnt.
#include "core/cluster/micro_batches.hpp"

namespace hexad::cluster::command {

protocol::LossReply evaluate(WorkerState& state, const protocol::Evaluate& evaluate) {
  plugin::BackendPlugin& backend = state.need_backend("evaluate");
  plugin::LossPlugin& loss = need_loss(state, "evaluate");
  const MicroBatches parts = micro_batches(evaluate.batch, evaluate.micro_batches, backend);
  const std::vector<std::string> names = loss_outputs(state);
  const ForwardOutputs outputs(parts, names);
  backend.forward(state.context(), HEXAD_WEIGHTS_CURRENT, parts.pointers, outputs.get(),
                  static_cast<int64_t>(names.size()), state.transform);
  double total = 0;
  for (size_t i = 0; i < parts.views.size() && backend.info().counts_loss; ++i) {
    const BatchView& part = parts.views[i];
    if (part.get()->is_dummy) continue;
    const ColumnViews columns(part.batch());
    const std::vector<DLTensor*> grads(names.size(), nullptr);  // nobody asks for them
    total += add_loss_metrics(
        state, loss.compute(state.context(), loss_shape(evaluate, part), columns.get(), outputs.of(i), grads));
  }
  state.metrics.add("loss", total, 1, plugin::ReduceAs::sum);
  return {state.metrics};
}

}  // namespace hexad::cluster::command
