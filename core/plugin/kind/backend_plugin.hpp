// A backend plugin's instance.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/plugin/kind/instance_base.hpp"

namespace hexad::plugin {

// Called once per micro-batch with the outputs asked for and the gradients to write. May throw: train() throws it on.
using LossCallback = std::function<void(int64_t batch_index, std::span<const hexad_named_tensor> outputs,
                                        std::span<DLTensor* const> grads)>;

// Temperature and sampling filters that logits pass before the log-softmax.
struct LogitTransform {
  double temperature = 1;
  int64_t top_k = 0;  // 0: off
  double top_p = 1;   // 1: off
};

class BackendPlugin : public Instance {
 public:
  // Creates the instance: the model is built and its weights are loaded. `config` is the `policy` section.
  BackendPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config);
  ~BackendPlugin();

  // What the backend said of itself when it was created; its lists live as long as the instance.
  const hexad_backend_info& info() const { return info_; }

  // Fills `outputs` (one array of named tensors in host memory per batch, all of num_outputs) under the weights
  // `which`.
  void forward(const CallContext& context, int32_t which, std::span<const hexad_batch* const> batches,
               std::span<hexad_named_tensor* const> outputs, int64_t num_outputs, const LogitTransform& transform);
  // Forward and backward over the micro-batches of one global batch. An exception of `loss` ends it and is thrown on.
  void train(const CallContext& context, std::span<const hexad_batch* const> batches,
             const std::vector<std::string>& outputs, const LossCallback& loss, const LogitTransform& transform);
  // Optimizer step. lr, weight_decay: NaN takes the optimizer's own; max_grad_norm <= 0 or NaN: no clipping.
  hexad_step_stats step(const CallContext& context, double lr, double weight_decay, double max_grad_norm,
                        bool discard = false);
  // Keeps a copy of the current weights as HEXAD_WEIGHTS_REFERENCE or _SNAPSHOT.
  void keep(const CallContext& context, int32_t which);

  // Directories; "" where `what` (HEXAD_CHECKPOINT_* bits) does not ask for it.
  void load(const CallContext& context, uint32_t what, const std::string& weights, const std::string& optimizer,
            int32_t which = HEXAD_WEIGHTS_CURRENT);
  void save(const CallContext& context, uint32_t what, const std::string& weights, const std::string& optimizer);

  // This rank's slices, borrowed until the instance is destroyed.
  std::span<const hexad_weight_slice> weight_layout(const CallContext& context);
  // Calls `bucket` with every bucket of the weights; a list is borrowed until `bucket` returns.
  void export_weights(const CallContext& context, int32_t which, int32_t form, int64_t max_bucket_bytes,
                      const std::function<void(const hexad_weight_list&)>& bucket);

  // Optional: without them nothing happens.
  void offload(const CallContext& context, uint64_t what);
  void onload(const CallContext& context, uint64_t what);
  bool has_memory() const;
  hexad_memory_stats memory(const CallContext& context);

 private:
  hexad_checkpoint_args checkpoint_args(uint32_t what, const std::string& weights, const std::string& optimizer,
                                        int32_t which) const;

  const hexad_backend_vtable* vtable_;
  hexad_backend* self_ = nullptr;
  hexad_backend_info info_{};
};

}  // namespace hexad::plugin
