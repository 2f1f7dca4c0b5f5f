// Commands on weights: refit, kept copies, checkpoints, memory.
#include <chrono>

#include "lib/base/error.hpp"
#include "core/cluster/refit/weight_sum.hpp"
#include "core/cluster/worker/state.hpp"

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

}  // namespace

Message refit(WorkerState& state, const Message& message) {
  if (state.refit) return refit_apart(state, message);
  plugin::BackendPlugin& backend = state.need_backend("refit");
  plugin::GeneratorPlugin& generator = state.need_generator("refit");
  const plugin::CallContext context = state.context();
  const auto start = std::chrono::steady_clock::now();
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
  Message answer;
  answer.header["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return answer;
}

// Checksums of the weights that the backend hands out, and with its layout those that the generator reports: of a rank
// that hosts both, or of its one side.
Message weight_sums(WorkerState& state, const Message&) {
  if (!state.backend) state.need_generator("weight_sums");
  const plugin::CallContext context = state.context();
  Json sums = Json::object();
  std::vector<std::byte> memory;
  const auto add = [&](const hexad_weight_slice& slice) {
    const DLTensor weight = on_host(state, *slice.tensor, memory);
    sums[slice.name] = {{"sum", weight_sum(weight)}, {"bytes", byte_size(weight)}};
  };
  if (state.backend)
    state.backend->export_weights(context, HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, kBucketBytes,
                                  [&](const hexad_weight_list& bucket) {
                                    for (int64_t i = 0; i < bucket.count; ++i) add(bucket.slices[i]);
                                  });
  if (state.generator) state.generator->weight_layout(context);
  Message answer;
  answer.header["sums"] = sums;
  answer.header["metrics"] = state.metrics.to_json();
  return answer;
}

Message keep(WorkerState& state, const Message& message) {
  state.need_backend("keep").keep(state.context(), message.header.at("which"));
  return {};
}

// Files that cannot be written leave the worker as it was: whether it goes on is the controller's to say. Answers when they
// are whole; they reach the disk after it.
Message save(WorkerState& state, const Message& message) {
  const std::string weights = message.header.at("weights"), optimizer = message.header.at("optimizer");
  const uint32_t what =
      (weights.empty() ? 0 : HEXAD_CHECKPOINT_MODEL) | (optimizer.empty() ? 0 : HEXAD_CHECKPOINT_OPTIMIZER);
  Message answer;
  try {
    state.need_backend("save").save(state.context(), what, weights, optimizer);
    std::vector<std::filesystem::path> folders;
    for (const std::string& folder : {weights, optimizer})
      if (!folder.empty()) folders.emplace_back(folder);
    state.saving.start(folders);
  } catch (const plugin::PluginError& error) {
    if (error.code() == HEXAD_UNAVAILABLE || error.code() == HEXAD_DEADLINE_EXCEEDED) throw;  // a peer is lost
    answer.header["failure"] = error.what();
  }
  return answer;
}

// Whether what was saved is on the disk, after `patience_ms` at most.
Message saved(WorkerState& state, const Message& message) {
  Message answer;
  try {
    answer.header["done"] = state.saving.done(std::chrono::milliseconds(message.header.at("patience_ms")));
  } catch (const Error& error) {
    answer.header["failure"] = error.what();
  }
  return answer;
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
