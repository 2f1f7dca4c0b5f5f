// A loss plugin's instance.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plugin/kind/instance_base.hpp"

namespace hexad::plugin {

// The micro-batch that a loss is computed over; see hexad_loss_batch. cu_seqlens is borrowed.
struct LossShape {
  int64_t num_sequences = 0;
  int64_t num_tokens = 0;
  const int64_t* cu_seqlens = nullptr;
  double global_valid_tokens = 0;
  double global_valid_sequences = 0;
  int64_t padded_length = 0;  // as hexad_batch's
};

struct LossMetric {
  std::string name;
  double value = 0;
  double weight = 0;
  int32_t reduce = HEXAD_REDUCE_SUM;
};

struct LossValue {
  double loss = 0;                  // this micro-batch's share
  std::vector<LossMetric> metrics;  // those that plan() kept, in declared order
};

class LossPlugin;
class Staging;

// What compute makes of a micro-batch, which a device may still be at.
class PendingLoss {
 public:
  PendingLoss(const LossPlugin& loss, std::unique_ptr<Staging> staging, DLTensor* value, DLTensor* metrics);
  ~PendingLoss();
  PendingLoss(PendingLoss&&) noexcept;
  // Waits for the device. The loss lives still.
  LossValue read() const;

 private:
  const LossPlugin* loss_;
  std::unique_ptr<Staging> staging_;  // owns both tensors
  DLTensor *value_, *metrics_;
};

class LossPlugin : public Instance {
 public:
  // Creates the instance and asks for its plan. `config` is the `loss_fn` section. Throws PluginError, or Error(config)
  // for keys of plugin_config that it did not read.
  LossPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config);
  ~LossPlugin();

  // Declared, whether used or not.
  std::span<const hexad_tensor_spec> declared_inputs() const { return {vtable_->inputs, vtable_->num_inputs}; }
  uint64_t caps() const { return vtable_->caps; }

  // Under the plan of this configuration: is this input (by name) needed or wanted at all?
  bool uses(std::string_view input) const;
  // Likewise: is this metric reported?
  bool reports(std::string_view metric) const;
  // Names of used inputs that the backend differentiates (`required_only`: without the optional ones), and of the
  // others.
  std::vector<std::string> differentiable_inputs(bool required_only = false) const;
  std::vector<std::string> plain_inputs() const;

  // Computes the loss of one micro-batch. `inputs` hold the plain inputs by name, `outputs` the backend's
  // differentiable outputs with grads[i] to write for outputs[i] (f32, like it; may be null). Tensors may lie in host
  // or CUDA memory: they are staged when the loss cannot take them where they are. Names that the loss does not use are
  // ignored, and their gradients are zeroed. Throws Error(data) if a required input is missing or has a wrong dtype or
  // length. The gradients are ready in the order of the call's stream.
  PendingLoss enqueue(const CallContext& context, const LossShape& shape, std::span<const hexad_named_tensor> inputs,
                      std::span<const hexad_named_tensor> outputs, std::span<DLTensor* const> grads);
  // The same, and waits for the loss.
  LossValue compute(const CallContext& context, const LossShape& shape, std::span<const hexad_named_tensor> inputs,
                    std::span<const hexad_named_tensor> outputs, std::span<DLTensor* const> grads);

  // From now on writes every compute call of the first `steps` steps to `folder`/step_S_call_N.safetensors
  // (recording.hpp).
  void record(std::filesystem::path folder, int64_t steps);

  bool has_advantages() const;
  // Replaces the engine's advantage estimator; `out` is f32 [T] in host memory.
  void advantages(const CallContext& context, const hexad_batch& rollout, DLTensor& out);
  // Tells the loss the reduced metrics of a finished step. Nothing to do if it does not listen.
  void end_step(const CallContext& context, std::span<const std::pair<std::string, double>> metrics);
  // State for a checkpoint; "" if the loss has none.
  std::string save_state(const CallContext& context);
  void load_state(const CallContext& context, std::string_view state);

 private:
  std::vector<hexad_named_tensor> select_inputs(const LossShape& shape, std::span<const hexad_named_tensor> inputs,
                                                std::span<const hexad_named_tensor> outputs) const;

  void record_call(const CallContext& context, const hexad_loss_batch& batch, const hexad_loss_out& out);

  struct Recorder {
    std::filesystem::path folder;
    int64_t steps = 0, calls = 0;
  };
  friend class PendingLoss;
  const hexad_loss_vtable* vtable_;
  hexad_loss* self_ = nullptr;
  Recorder recorder_;
  uint64_t used_inputs_ = ~uint64_t{0};
  uint64_t used_metrics_ = ~uint64_t{0};
};

}  // namespace hexad::plugin
