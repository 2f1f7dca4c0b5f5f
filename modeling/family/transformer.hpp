// The one decoder that all families share, as functions of weights that the caller owns: a backend may gather and
// free them per block. Tokens are packed: hidden states are [T, H] whatever the batch looks like; who sees whom is the
// business of Attention. Activations have the dtype of the weights, but the stream of hidden states between blocks
// is fp32 beside 16-bit weights. Everything is differentiable.
#pragma once
#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

#include "modeling/family/model_config.hpp"
#include "modeling/moe/moe_layer.hpp"
#include "modeling/op/checkpoint.hpp"
#include "modeling/op/rope.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

namespace hexad::modeling {

// Returns the full weight of a Hugging Face name.
using WeightLookup = std::function<at::Tensor(const std::string& hf_name)>;

// Weights of one block, [out, in] each; undefined when the family has none.
struct LayerWeights {
  at::Tensor input_norm, q_proj, k_proj, v_proj, o_proj, q_bias, k_bias, v_bias, o_bias, q_norm, k_norm;
  at::Tensor post_attention_norm, gate_proj, up_proj, down_proj, gate_bias, up_bias, down_bias;
  MlaWeights mla;  // in place of q_proj ... v_proj
  MoeWeights moe;  // in place of gate_proj ... down_proj, where the layer has experts
};

// Looks up the experts of `experts` alone; by default all.
LayerWeights layer_weights(const ModelConfig& config, int64_t layer, const WeightLookup& lookup,
                           std::optional<Range> experts = {});

class Attention {
 public:
  virtual ~Attention() = default;
  // q [T, Hq, D], k [T, Hkv, D] and v [T, Hkv, Dv], after q/k norm and rope -> [T, Hq, Dv]; Dv is D but with MLA. The
  // scale is 1/sqrt(D). `layer` chooses the sliding window and, with a KV cache, the layer to write k and v into.
  virtual at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) = 0;
};

// How a block is run.
struct BlockOptions {
  // Of the projections of attention and of dense MLPs; experts take row_tile and whether they are in FP8 (tensorwise
  // alone), shared ones row_tile. A row_tile makes a token's result independent of what else is in the batch: the
  // deterministic mode of a generator.
  LinearOptions linear;
  // The ranks that share every layer; the weights are this rank's parts (parallel/tensor_plan.hpp).
  TensorParallel tp = {};
  // In training; attention and rope must live as long as the graph.
  Recompute recompute = {};
};

// How each mixture-of-experts layer is run in training (moe_layer.hpp); null: the model's own routing, local experts.
using MoeRuns = std::function<MoeRun(int64_t layer)>;

// ids: int64 [T] -> [T, H].
at::Tensor embed(const at::Tensor& embedding, const at::Tensor& ids);

// The stream of hidden states on its way between two blocks: [T, H] and what the last part adds to it (undefined:
// nothing), in the dtype of the weights. The norm that reads the stream next takes it in, in one pass on a GPU.
struct Residual {
  at::Tensor hidden, delta;
  at::Tensor sum() const;
};

// One block: [T, H] -> [T, H]; with sequence parallelism this rank's [T / ranks, H], while rope and attention are of
// all T tokens.
Residual block_residual(const ModelConfig& config, int64_t layer, const LayerWeights& weights, const Residual& in,
                        const Rope& rope, Attention& attention, const BlockOptions& options = {},
                        const MoeRuns& moe_runs = {});
// The same from sum to sum.
at::Tensor block_forward(const ModelConfig& config, int64_t layer, const LayerWeights& weights,
                         const at::Tensor& hidden, const Rope& rope, Attention& attention,
                         const BlockOptions& options = {}, const MoeRuns& moe_runs = {});

at::Tensor final_norm(const ModelConfig& config, const at::Tensor& weight, const at::Tensor& hidden);

// Embedding, all blocks and the final norm: ids and positions int64 [T] -> [T, H]. The head is head_logprobs
// (op/logprob_head.hpp) or, for logits, apply_linear with the weight of head_weight_name().
at::Tensor forward_hidden(const ModelConfig& config, const WeightLookup& lookup, const at::Tensor& ids,
                          const at::Tensor& positions, Attention& attention, const BlockOptions& options = {},
                          const MoeRuns& moe_runs = {});

}  // namespace hexad::modeling
