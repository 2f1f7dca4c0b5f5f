#include "core/plugin/kind/loss_plugin.hpp"

#include <algorithm>

#include "core/plugin/host/staging.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/recording.hpp"

namespace hexad::plugin {
namespace {

constexpr DLDevice kHost{kDLCPU, 0};
constexpr DLDataType kF64{kDLFloat, 64, 1};

std::string dtype_text(DLDataType dtype) {
  const char* kind = dtype.code == kDLFloat ? "f" : dtype.code == kDLInt ? "i" : dtype.code == kDLUInt ? "u" : "type ";
  return fmt::format("{}{}", kind, static_cast<int>(dtype.bits));
}

const hexad_named_tensor* find(std::span<const hexad_named_tensor> tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return name == t.name; });
  return found == tensors.end() || !found->tensor ? nullptr : &*found;
}

std::string names_of(std::span<const hexad_named_tensor> inputs, std::span<const hexad_named_tensor> outputs) {
  std::string names;
  for (const auto& list : {outputs, inputs}) {
    for (const hexad_named_tensor& tensor : list) {
      if (tensor.tensor) names += (names.empty() ? "" : ", ") + std::string(tensor.name);
    }
  }
  return names.empty() ? "nothing" : names;
}

// Throws unless the tensor is what the loss declared, for this batch.
void check_tensor(const hexad_tensor_spec& spec, const DLTensor& tensor, const LossShape& shape,
                  const std::string& label) {
  const DLDataType got = tensor.dtype;
  if (got.code != spec.dtype.code || got.bits != spec.dtype.bits || got.lanes != spec.dtype.lanes) {
    fail(ErrorKind::data, "{}: input '{}' has dtype {}, wanted {}", label, spec.name, dtype_text(got),
         dtype_text(spec.dtype));
  }
  const int64_t wanted = spec.axis == HEXAD_AXIS_TOKEN    ? shape.num_tokens
                         : spec.axis == HEXAD_AXIS_SAMPLE ? shape.num_sequences
                                                          : -1;
  const int64_t length = tensor.ndim > 0 ? tensor.shape[0] : 1;
  if (wanted >= 0 && length != wanted) {
    fail(ErrorKind::data, "{}: input '{}' has {} rows, wanted {} ({})", label, spec.name, length, wanted,
         spec.axis == HEXAD_AXIS_TOKEN ? "one a token" : "one a sequence");
  }
  if (!contiguous(tensor)) fail(ErrorKind::data, "{}: input '{}' is not contiguous", label, spec.name);
}

// Where compute runs: in host memory if the loss takes it and nothing lies on a GPU, or if it takes nothing else.
DLDevice choose_device(uint64_t caps, std::span<const hexad_named_tensor> tensors, DLDevice worker) {
  for (const hexad_named_tensor& named : tensors) {
    const bool cuda = named.tensor && named.tensor->device.device_type == kDLCUDA;
    if (cuda && (caps & HEXAD_CAP_CUDA_MEM)) return named.tensor->device;
  }
  return caps & HEXAD_CAP_HOST_MEM ? kHost : worker;
}

}  // namespace

LossPlugin::LossPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config)
    : Instance(plugin, Kind::loss, std::move(config)), vtable_(plugin.desc->loss) {
  create_instance(context, vtable_, self_);
  try {
    if (HEXAD_HAS(vtable_, plan) && vtable_->plan) {
      hexad_loss_plan plan{};
      plan.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_plan, used_metrics);
      plan.used_inputs = plan.used_metrics = ~uint64_t{0};
      invoke(context, "plan", [&](hexad_call* call) { return vtable_->plan(self_, call, &plan); });
      used_inputs_ = plan.used_inputs;
      used_metrics_ = plan.used_metrics;
    }
    require_all_keys_read();
  } catch (...) {
    clean_up("destroy", [&] { vtable_->destroy(self_); });
    throw;
  }
}

LossPlugin::~LossPlugin() {
  clean_up("destroy", [&] { vtable_->destroy(self_); });
}

bool LossPlugin::uses(std::string_view input) const {
  for (uint32_t i = 0; i < vtable_->num_inputs; ++i) {
    if (input == vtable_->inputs[i].name) return used_inputs_ >> i & 1;
  }
  return false;
}

bool LossPlugin::reports(std::string_view metric) const {
  for (uint32_t i = 0; i < vtable_->num_metrics; ++i) {
    if (metric == vtable_->metrics[i].name) return used_metrics_ >> i & 1;
  }
  return false;
}

std::vector<std::string> LossPlugin::differentiable_inputs(bool required_only) const {
  std::vector<std::string> names;
  for (const hexad_tensor_spec& spec : declared_inputs()) {
    const bool optional = spec.flags & HEXAD_SPEC_OPTIONAL;
    if ((spec.flags & HEXAD_SPEC_DIFFERENTIABLE) && uses(spec.name) && !(optional && required_only)) {
      names.push_back(spec.name);
    }
  }
  return names;
}

std::vector<std::string> LossPlugin::plain_inputs() const {
  std::vector<std::string> names;
  for (const hexad_tensor_spec& spec : declared_inputs()) {
    if (!(spec.flags & HEXAD_SPEC_DIFFERENTIABLE) && uses(spec.name)) names.push_back(spec.name);
  }
  return names;
}

// The tensors of the declared inputs, in order; NULL where not used or absent.
std::vector<hexad_named_tensor> LossPlugin::select_inputs(const LossShape& shape,
                                                          std::span<const hexad_named_tensor> inputs,
                                                          std::span<const hexad_named_tensor> outputs) const {
  std::vector<hexad_named_tensor> selected;
  for (uint32_t i = 0; i < vtable_->num_inputs; ++i) {
    const hexad_tensor_spec& spec = vtable_->inputs[i];
    const hexad_named_tensor* found = find(outputs, spec.name);
    if (!found) found = find(inputs, spec.name);
    const bool used = used_inputs_ >> i & 1;
    if (used && !found && !(spec.flags & HEXAD_SPEC_OPTIONAL)) {
      fail(ErrorKind::data, "{}: needs '{}', which this batch does not have (it has {})", plugin().label(), spec.name,
           names_of(inputs, outputs));
    }
    hexad_named_tensor named = used && found ? *found : hexad_named_tensor{};
    named.name = spec.name;
    named.axis = spec.axis;
    if (named.tensor) check_tensor(spec, *named.tensor, shape, plugin().label());
    selected.push_back(named);
  }
  return selected;
}

LossValue LossPlugin::compute(const CallContext& context, const LossShape& shape,
                              std::span<const hexad_named_tensor> inputs, std::span<const hexad_named_tensor> outputs,
                              std::span<DLTensor* const> grads) {
  return enqueue(context, shape, inputs, outputs, grads).read();
}

PendingLoss LossPlugin::enqueue(const CallContext& context, const LossShape& shape,
                                std::span<const hexad_named_tensor> inputs, std::span<const hexad_named_tensor> outputs,
                                std::span<DLTensor* const> grads) {
  Staging staging(runtime_of(host()));  // for the length of the call
  auto results = std::make_unique<Staging>(runtime_of(host()));
  std::vector<hexad_named_tensor> selected = select_inputs(shape, inputs, outputs);
  const DLDevice device = choose_device(caps(), selected, context.device);
  for (DLTensor* grad : grads) {
    if (grad) staging.fill_zero(*grad);
  }

  // One gradient per differentiable input: the caller's own if it lies right, else a buffer that is copied there after.
  std::vector<DLTensor*> loss_grads;
  std::vector<std::pair<DLTensor*, DLTensor*>> copy_back;
  for (uint32_t i = 0; i < vtable_->num_inputs; ++i) {
    if (!(vtable_->inputs[i].flags & HEXAD_SPEC_DIFFERENTIABLE)) continue;
    DLTensor* grad = nullptr;
    if (selected[i].tensor) {
      DLTensor* target = nullptr;
      for (size_t o = 0; o < outputs.size(); ++o) {
        if (std::string_view(outputs[o].name) == selected[i].name) target = grads[o];
      }
      const bool direct = target && same_device(target->device, device);
      grad = direct ? target : staging.zeros_like(*selected[i].tensor, device);
      if (target && !direct) copy_back.emplace_back(grad, target);
    }
    loss_grads.push_back(grad);
  }
  for (hexad_named_tensor& named : selected) {
    if (named.tensor) named.tensor = staging.on(named.tensor, device);
  }

  hexad_loss_batch batch{};
  batch.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_batch, padded_length);
  batch.num_sequences = shape.num_sequences;
  batch.num_tokens = shape.num_tokens;
  batch.cu_seqlens = shape.cu_seqlens;
  batch.global_valid_tokens = shape.global_valid_tokens;
  batch.global_valid_sequences = shape.global_valid_sequences;
  batch.padded_length = shape.padded_length;
  batch.inputs = selected.data();
  batch.num_inputs = static_cast<int64_t>(selected.size());

  hexad_loss_out out{};
  out.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_out, metrics);
  out.loss = results->zeros(kF64, {1}, device);
  out.grads = loss_grads.data();
  out.num_grads = static_cast<int64_t>(loss_grads.size());
  out.metrics = results->zeros(kF64, {vtable_->num_metrics, 2}, device);
  invoke(context, "compute", [&](hexad_call* call) { return vtable_->compute(self_, call, &batch, &out); });

  if (!recorder_.folder.empty() && context.step <= recorder_.steps) record_call(context, batch, out);
  for (const auto& [from, to] : copy_back) staging.copy(*from, *to);
  return {*this, std::move(results), out.loss, out.metrics};
}

void LossPlugin::record(std::filesystem::path folder, int64_t steps) { recorder_ = {std::move(folder), steps, 0}; }

void LossPlugin::record_call(const CallContext& context, const hexad_loss_batch& batch, const hexad_loss_out& out) {
  Staging staging(runtime_of(host()));
  Recording recording;
  recording.about = {{"step", context.step},
                     {"plugin", plugin().label()},
                     {"name", plugin().manifest.name},
                     {"global_valid_tokens", batch.global_valid_tokens},
                     {"global_valid_sequences", batch.global_valid_sequences},
                     {"padded_length", batch.padded_length},
                     {"section", config_.section()}};
  int64_t offsets = batch.num_sequences + 1, grad = 0;
  recording.add("cu_seqlens",
                {const_cast<int64_t*>(batch.cu_seqlens), kHost, 1, {kDLInt, 64, 1}, &offsets, nullptr, 0});
  for (uint32_t i = 0; i < vtable_->num_inputs; ++i) {
    const hexad_named_tensor& input = batch.inputs[i];
    if (input.tensor) recording.add(std::string("input.") + input.name, *staging.on(input.tensor, kHost));
    if (!(vtable_->inputs[i].flags & HEXAD_SPEC_DIFFERENTIABLE)) continue;
    DLTensor* of_input = out.grads[grad++];
    if (of_input) recording.add(std::string("grad.") + input.name, *staging.on(of_input, kHost));
  }
  recording.add("loss", *staging.on(out.loss, kHost));
  recording.add("metrics", *staging.on(out.metrics, kHost));
  write_recording(recorder_.folder / fmt::format("step_{}_call_{}.safetensors", context.step, recorder_.calls++),
                  recording);
}

PendingLoss::PendingLoss(const LossPlugin& loss, std::unique_ptr<Staging> staging, DLTensor* value, DLTensor* metrics)
    : loss_(&loss), staging_(std::move(staging)), value_(value), metrics_(metrics) {}
PendingLoss::~PendingLoss() = default;
PendingLoss::PendingLoss(PendingLoss&&) noexcept = default;

LossValue PendingLoss::read() const {
  LossValue value;
  value.loss = *HEXAD_F64(staging_->on(value_, kHost));
  const double* entries = HEXAD_F64(staging_->on(metrics_, kHost));
  for (uint32_t i = 0; i < loss_->vtable_->num_metrics; ++i) {
    if (!(loss_->used_metrics_ >> i & 1)) continue;
    const hexad_metric_spec& spec = loss_->vtable_->metrics[i];
    value.metrics.push_back({spec.name, entries[2 * i], entries[2 * i + 1], spec.reduce});
  }
  return value;
}

bool LossPlugin::has_advantages() const { return HEXAD_HAS(vtable_, advantages) && vtable_->advantages; }

void LossPlugin::advantages(const CallContext& context, const hexad_batch& rollout, DLTensor& out) {
  require_function(context, "advantages", has_advantages());
  invoke(context, "advantages", [&](hexad_call* call) { return vtable_->advantages(self_, call, &rollout, &out); });
}

void LossPlugin::end_step(const CallContext& context, std::span<const std::pair<std::string, double>> metrics) {
  if (!HEXAD_HAS(vtable_, end_step) || !vtable_->end_step) return;
  std::vector<const char*> names;
  std::vector<double> values;
  for (const auto& [name, value] : metrics) names.push_back(name.c_str()), values.push_back(value);
  hexad_step_metrics step{};
  step.struct_size = HEXAD_STRUCT_SIZE(hexad_step_metrics, count);
  step.names = names.data();
  step.values = values.data();
  step.count = static_cast<int64_t>(metrics.size());
  invoke(context, "end_step", [&](hexad_call* call) { return vtable_->end_step(self_, call, &step); });
}

std::string LossPlugin::save_state(const CallContext& context) {
  if (!HEXAD_HAS(vtable_, state_load) || !vtable_->state_save) return "";
  std::string state;
  const auto sink = [](void* ctx, const void* bytes, uint64_t size) -> hexad_code {
    static_cast<std::string*>(ctx)->append(static_cast<const char*>(bytes), size);
    return HEXAD_OK;
  };
  invoke(context, "state_save", [&](hexad_call* call) { return vtable_->state_save(self_, call, sink, &state); });
  return state;
}

void LossPlugin::load_state(const CallContext& context, std::string_view state) {
  require_function(context, "state_load", HEXAD_HAS(vtable_, state_load) && vtable_->state_load);
  invoke(context, "state_load",
         [&](hexad_call* call) { return vtable_->state_load(self_, call, state.data(), state.size()); });
}

}  // namespace hexad::plugin
