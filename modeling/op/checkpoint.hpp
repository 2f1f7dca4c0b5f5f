// Activation recomputation inside a graph: a part of the model keeps its inputs and runs again in the backward pass.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// Which parts of a block are run again in its backward pass: Megatron-Core's recompute_modules. Of norms,
// expert_activation and latent_up what is thrown away is the output, which the next part alone has use for; of the
// others what lies inside.
struct Recompute {
  bool core_attention = false;     // core_attn: attention of queries, keys and values
  bool mlp = false;                // mlp: a dense MLP
  bool moe = false;                // moe: router, experts, shared experts
  bool norms = false;              // layernorm: the norms before attention and before the MLP
  bool expert_activation = false;  // moe_act: the activation between an expert's two products
  bool latent_up = false;          // mla_up_proj: queries, keys and values out of the latents of MLA
  bool shared_experts = false;     // shared_experts
};

using Tensors = std::vector<at::Tensor>;

using Run = std::function<Tensors(const Tensors& activations)>;

// run(activations). With gradients, what run() computes on the way is freed, and computed again when the backward pass
// comes here; collectives in it too. run() must not depend on anything that changes before that; what it refers to must
// live as long as the graph. `weights`: leaves besides the activations that run() uses and that want gradients;
// undefined ones and those that want none are left out.
Tensors checkpoint(Run run, const Tensors& activations, const Tensors& weights);

// Likewise, and the outputs are freed too once they have been used (Megatron-Core's CheckpointWithoutOutput).
class DiscardedOutputs {
 public:
  DiscardedOutputs(Run run, const Tensors& activations, const Tensors& weights);

  const Tensors& outputs() const { return outputs_; }
  // Frees them until the gradient of `consumer` is known: what uses the outputs must lie before `consumer` in the
  // graph, and have run.
  void discard_until(const at::Tensor& consumer);

  struct State;

 private:
  Tensors outputs_;
  std::shared_ptr<State> state_;  // null without gradients
};

}  // namespace hexad::modeling
