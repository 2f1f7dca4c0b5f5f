// AdamW, Adam and SGD over flat shards of fp32 masters, as torch.optim computes them; its state may be kept in narrower
// types.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "modeling/parallel/tensor/state_tensor.hpp"

namespace hexad::modeling {

enum class OptimizerKind { adamw, adam, sgd };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 1e-3;
  double weight_decay = 1e-2;  // adamw: decoupled; adam, sgd: added to the gradient
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool amsgrad = false;
  double momentum = 0, dampening = 0;  // sgd
  bool nesterov = false;               // sgd
  bool maximize = false;
  at::ScalarType average_type = at::kFloat, square_type = at::kFloat;  // adam's state, between steps
};

// `name`: the class, dotted or bare ("torch.optim.AdamW", "SGD"). `kwargs`: its arguments (null: none) under torch's
// names and with torch's defaults; foreach, fused, capturable and differentiable are accepted and mean nothing here.
// Throws Error: unknown class or argument (lists the known ones), value out of range.
OptimizerOptions parse_optimizer(const std::string& name, const nlohmann::json& kwargs);

class Optimizer {
 public:
  explicit Optimizer(const OptimizerOptions& options) : options_(options) {}

  const OptimizerOptions& options() const { return options_; }
  int64_t steps() const { return steps_; }

  // One update of params[i] in place from grads[i] times `grad_scale` (which may leave them scaled), all fp32. The list
  // must be the same at every call: same order, shapes and devices. rounded[i], where there is one, takes the new
  // parameter in its own dtype.
  void step(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, double lr, double weight_decay,
            double grad_scale = 1, const std::vector<at::Tensor>& rounded = {});
  // The same in parts: begin_step, then each parameter once, those at `first` and behind it together.
  void begin_step() { ++steps_; }
  void update(size_t first, const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, double lr,
              double weight_decay);

  // Names of the tensors that are kept for each parameter ("exp_avg", ...): fixed by the options.
  std::vector<std::string> state_names() const;
  // State of parameter i, shaped like it, in fp32; made (zeros) on first use.
  at::Tensor state(const std::string& name, size_t i, const at::Tensor& param);
  void set_state(const std::string& name, size_t i, const at::Tensor& param, const at::Tensor& value);
  void set_steps(int64_t steps) { steps_ = steps; }
  // Bytes of all state, and its move to another device.
  int64_t state_bytes() const;
  void move_to(at::Device device);

 private:
  StateTensor& kept(const std::string& name, size_t i, const at::Tensor& param);
  at::ScalarType type_of(const std::string& name) const;
  bool wide_states() const { return options_.average_type == at::kFloat && options_.square_type == at::kFloat; }
  bool one_pass(const std::vector<at::Tensor>& params) const;
  void update_in_one_pass(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, double lr,
                          double decay, double grad_scale, const std::vector<at::Tensor>& rounded);
  using States = std::map<std::string, std::vector<at::Tensor>>;  // by name, one of each parameter
  void update_adam(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, const States& states,
                   double lr, double decay);
  void update_sgd(const std::vector<at::Tensor>& params, const std::vector<at::Tensor>& grads, const States& states,
                  double lr, double decay);

  OptimizerOptions options_;
  int64_t steps_ = 0;
  std::map<std::string, std::vector<StateTensor>> state_;
};

}  // namespace hexad::modeling
