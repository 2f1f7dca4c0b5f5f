// Commands on weights: refit, kept copies, checkpoints, memory.
#include "core/base/error.hpp"
#include "core/cluster/worker_state.hpp"

namespace hexad::cluster::command {
namespace {

constexpr int64_t kBucketBytes = int64_t{256} << 20;

}  // namespace

Message refit(WorkerState& state, const Message& message) {
  plugin::BackendPlugin& backend = state.need_backend("refit");
  plugin::GeneratorPlugin& generator = state.need_generator("refit");
  const plugin::CallContext context = state.context();
  generator.update_begin(context, message.header.at("version"));
  try {
    backend.export_weights(context, HEXAD_WEIGHTS_CURRENT, static_cast<int32_t>(generator.info().weight_form),
                           kBucketBytes,
                           [&](const hexad_weight_list& bucket) { generator.update_bucket(context, bucket); });
  } catch (...) {
    generator.update_end(context, /*commit=*/false);  // the old weights stay in force
    throw;
  }
  generator.update_end(context, /*commit=*/true);
  return {};
}

Message keep(WorkerState& state, const Message& message) {
  state.need_backend("keep").keep(state.context(), message.header.at("which"));
  return {};
}

Message save(WorkerState& state, const Message& message) {
  const std::string weights = message.header.at("weights"), optimizer = message.header.at("optimizer");
  const uint32_t what =
      (weights.empty() ? 0 : HEXAD_CHECKPOINT_MODEL) | (optimizer.empty() ? 0 : HEXAD_CHECKPOINT_OPTIMIZER);
  state.need_backend("save").save(state.context(), what, weights, optimizer);
  return {};
}

Message load(WorkerState& state, const Message& message) {
  const std::string weights = message.header.at("weights"), optimizer = message.header.at("optimizer");
  const uint32_t what =
      (weights.empty() ? 0 : HEXAD_CHECKPOINT_MODEL) | (optimizer.empty() ? 0 : HEXAD_CHECKPOINT_OPTIMIZER);
  state.need_backend("load").load(state.context(), what, weights, optimizer, message.header.at("which"));
  return {};
}

Message offload(WorkerState& state, const Message& message) {
  state.need_backend("offload").offload(state.context(), message.header.at("what"));
  return {};
}

Message onload(WorkerState& state, const Message& message) {
  state.need_backend("onload").onload(state.context(), message.header.at("what"));
  return {};
}

}  // namespace hexad::cluster::command
