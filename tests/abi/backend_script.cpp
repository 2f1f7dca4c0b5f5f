#include <unistd.h>

#include <filesystem>
#include <limits>

#include "core/plugin/kind/backend_plugin.hpp"
#include "tests/abi/script_support.hpp"

namespace abi_test {
namespace {

namespace fs = std::filesystem;
using hexad::plugin::BackendPlugin;
constexpr double kOwn = std::numeric_limits<double>::quiet_NaN();

struct TemporaryFolder {
  TemporaryFolder() : path(fs::temp_directory_path() / ("hexad-abi-" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  fs::path path;
};

// One micro-batch of two sequences of 3 and 2 tokens.
struct Batch {
  Batch() {
    batch.struct_size = HEXAD_STRUCT_SIZE(hexad_batch, is_dummy);
    batch.num_sequences = 2;
    batch.num_tokens = ids.size;
    batch.cu_seqlens = cu_seqlens;
    batch.tensors = &tensor;
    batch.num_tensors = 1;
  }
  const int64_t cu_seqlens[3] = {0, 3, 5};
  Array<int64_t> ids{{0, 1, 3, 2, 1}};
  hexad_named_tensor tensor{"input_ids", &ids.tensor, nullptr, HEXAD_AXIS_TOKEN, 0};
  hexad_batch batch{};
};

Json forward(BackendPlugin& backend, const Recorder& recorder, int32_t which) {
  const Batch data;
  const std::vector<const hexad_batch*> batches{&data.batch};
  Array<float> logprobs({9, 9, 9, 9, 9});
  hexad_named_tensor output{"logprobs", &logprobs.tensor, nullptr, HEXAD_AXIS_TOKEN, 0};
  hexad_named_tensor* const outputs[] = {&output};
  backend.forward(recorder.context, which, batches, outputs, 1, {.temperature = 0.7});
  return logprobs.data;
}

// Two micro-batches whose loss is sum(logprobs * (index + 1) / 4); tells what the loss saw and what the step said.
Json train(BackendPlugin& backend, const Recorder& recorder, double max_grad_norm) {
  const Batch data;
  const std::vector<const hexad_batch*> batches{&data.batch, &data.batch};
  Json seen = Json::array();
  const auto loss = [&](int64_t index, auto outputs, auto grads) {
    const float* values = HEXAD_F32(outputs[0].tensor);
    seen.push_back({{"index", index}, {"logprobs", std::vector<float>(values, values + 5)}});
    std::fill_n(HEXAD_F32(grads[0]), 5, static_cast<float>(index + 1) / 4);
  };
  backend.train(recorder.context, batches, {"logprobs"}, loss, {});
  const hexad_step_stats stats = backend.step(recorder.context, 0.1, kOwn, max_grad_norm);
  return {{"seen", seen}, {"grad_norm", stats.grad_norm}, {"skipped", stats.skipped}};
}

Json exported(BackendPlugin& backend, const Recorder& recorder, int32_t which) {
  Json told = Json::array();
  backend.export_weights(recorder.context, which, HEXAD_FORM_FULL, 1 << 20, [&](const hexad_weight_list& list) {
    for (int64_t i = 0; i < list.count; ++i) {
      const hexad_weight_slice& slice = list.slices[i];
      const float* data = HEXAD_F32(slice.tensor);
      told.push_back({{"name", slice.name}, {"data", std::vector<float>(data, data + slice.shape[0])}});
    }
  });
  return told;
}

Json description(const hexad_backend_info& info) {
  return {{"num_parameters", info.num_parameters},
          {"dp", {info.dp_rank, info.dp_size}},
          {"tp_pp_cp_ep", {info.tp_size, info.pp_size, info.cp_size, info.ep_size}},
          {"multiples", {info.sequence_multiple, info.micro_batch_multiple}},
          {"counts_loss", info.counts_loss},
          {"outputs", std::vector<std::string>(info.outputs, info.outputs + info.num_outputs)},
          {"inputs", std::vector<std::string>(info.inputs, info.inputs + info.num_inputs)}};
}

}  // namespace

Json run_backend(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config) {
  Recorder recorder;
  const Json section = {{"model_name", "toy"}, {"plugin_config", plugin_config}};
  BackendPlugin backend(plugin, recorder.context, hexad::plugin::PluginConfig("policy", section));
  Json told;
  told["info"] = description(backend.info());
  told["layout"] = Json::array();
  for (const hexad_weight_slice& slice : backend.weight_layout(recorder.context))
    told["layout"].push_back({slice.name, slice.global_shape[0], slice.offsets[0], slice.shape[0], slice.dtype.bits});
  told["before"] = forward(backend, recorder, HEXAD_WEIGHTS_CURRENT);
  backend.keep(recorder.context, HEXAD_WEIGHTS_REFERENCE);
  told["first"] = train(backend, recorder, 0);
  told["second"] = train(backend, recorder, 0.5);
  told["after"] = forward(backend, recorder, HEXAD_WEIGHTS_CURRENT);
  told["reference"] = forward(backend, recorder, HEXAD_WEIGHTS_REFERENCE);

  const TemporaryFolder folder;
  backend.save(recorder.context, HEXAD_CHECKPOINT_MODEL, folder.path.string(), "");
  told["third"] = train(backend, recorder, 0);
  told["moved"] = exported(backend, recorder, HEXAD_WEIGHTS_CURRENT);
  backend.load(recorder.context, HEXAD_CHECKPOINT_MODEL, folder.path.string(), "");
  told["loaded"] = exported(backend, recorder, HEXAD_WEIGHTS_CURRENT);
  told["kept"] = exported(backend, recorder, HEXAD_WEIGHTS_REFERENCE);

  backend.offload(recorder.context, HEXAD_OFFLOAD_PARAMS);
  if (backend.has_memory()) told["offloaded_bytes"] = backend.memory(recorder.context).parameter_bytes;
  backend.onload(recorder.context, HEXAD_OFFLOAD_PARAMS);
  if (backend.has_memory()) told["onloaded_bytes"] = backend.memory(recorder.context).parameter_bytes;
  told["never_kept"] = refusal([&] { forward(backend, recorder, HEXAD_WEIGHTS_SNAPSHOT); });
  told["host_metrics"] = recorder.metrics;
  return told;
}

}  // namespace abi_test
