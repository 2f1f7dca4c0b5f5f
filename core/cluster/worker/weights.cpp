// Commands on weights: refit, kept copies, checkpoints.
#include <chrono>

#include "core/cluster/refit/weight_sum.hpp"
#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster::command {
namespace {

constexpr int64_t kBucketBytes = int64_t{256} << 20;

size_t byte_size(const DLTensor& tensor) {
  size_t bytes = tensor.dtype.bits / 8;
  for (int32_t d = 0; d < tensor.ndim; ++d) bytes *= static_cast<size_t>(tensor.shape[d]);
  return bytes;
}

// The tensor, or a copy of it in `memory`.
DLTensor on_host(const WorkerState& state, const DLTensor& tensor, std::vector<std::byte>& memory) {
  if (tensor.device.device_type == kDLCPU) return tensor;
  memory.resize(byte_size(tensor));
  DLTensor host{memory.data(), {kDLCPU, 0}, tensor.ndim, tensor.dtype, tensor.shape, nullptr, 0};
  if (state.runtime->copy(&tensor, &host) != HEXAD_OK) fail(ErrorKind::worker, "runtime: {}", state.runtime->error());
  return host;
}

// HEXAD_CHECKPOINT_* bits of a command that names directories.
uint32_t parts_of(const auto& command) {
  return (command.weights.empty() ? 0 : HEXAD_CHECKPOINT_MODEL) |
         (command.optimizer.empty() ? 0 : HEXAD_CHECKPOINT_OPTIMIZER);
}

}  // namespace

protocol::Refit::Reply refit(WorkerState& state, const protocol::Refit& refit) {
  if (state.refit) return refit_apart(state, refit);
  plugin::BackendPlugin& backend = state.need_backend("refit");
  plugin::GeneratorPlugin& generator = state.need_generator("refit");
  const plugin::CallContext context = state.context();
  const auto start = std::chrono::steady_clock::now();
  generator.update_begin(context, refit.version);
  try {
    backend.export_weights(context, HEXAD_WEIGHTS_CURRENT, static_cast<int32_t>(generator.info().weight_form),
                           kBucketBytes,
                           [&](const hexad_weight_list& bucket) { generator.update_bucket(context, bucket); });
  } catch (...) {
    generator.update_end(context, /*commit=*/false);  // the old weights stay in force
    throw;
  }
  generator.update_end(context, /*commit=*/true);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

// Checksums of the weights that the backend hands out, and with its layout those that the generator reports: of a rank
// that hosts both, or of its one side.
protocol::WeightSums::Reply weight_sums(WorkerState& state, const protocol::WeightSums&) {
  if (!state.backend) state.need_generator("weight_sums");
  const plugin::CallContext context = state.context();
  protocol::WeightSums::Reply reply;
  std::vector<std::byte> memory;
  const auto add = [&](const hexad_weight_slice& slice) {
    const DLTensor weight = on_host(state, *slice.tensor, memory);
    reply.sums[slice.name] = {.sum = weight_sum(weight), .bytes = static_cast<int64_t>(byte_size(weight))};
  };
  if (state.backend)
    state.backend->export_weights(context, HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, kBucketBytes,
                                  [&](const hexad_weight_list& bucket) {
                                    for (int64_t i = 0; i < bucket.count; ++i) add(bucket.slices[i]);
                                  });
  if (state.generator) state.generator->weight_layout(context);
  reply.metrics = state.metrics;
  return reply;
}

protocol::Nothing keep(WorkerState& state, const protocol::Keep& keep) {
  state.need_backend("keep").keep(state.context(), keep.which);
  return {};
}

// Files that cannot be written leave the worker as it was: whether it goes on is the controller's to say.
protocol::Save::Reply save(WorkerState& state, const protocol::Save& save) {
  try {
    state.need_backend("save").save(state.context(), parts_of(save), save.weights, save.optimizer);
    std::vector<std::filesystem::path> folders;
    for (const std::string& folder : {save.weights, save.optimizer})
      if (!folder.empty()) folders.emplace_back(folder);
    state.saving.start(folders);
  } catch (const plugin::PluginError& error) {
    if (error.code() == HEXAD_UNAVAILABLE || error.code() == HEXAD_DEADLINE_EXCEEDED) throw;  // a peer is lost
    return {.failure = error.what()};
  }
  return {};
}

protocol::Saved::Reply saved(WorkerState& state, const protocol::Saved& saved) {
  try {
    return {.done = state.saving.done(std::chrono::milliseconds(saved.patience_ms)), .failure = {}};
  } catch (const Error& error) {
    return {.failure = error.what()};
  }
}

protocol::Nothing load(WorkerState& state, const protocol::Load& load) {
  state.need_backend("load").load(state.context(), parts_of(load), load.weights, load.optimizer, load.which);
  return {};
}

}  // namespace hexad::cluster::command
