// The router of one mixture-of-experts layer: routing, balancing losses and their running state. It sees the tokens of
// this rank only; what must be counted over ranks goes through the groups. Formulas are those of Megatron-Core's
// TopKRouter (router.py), key names those of its config.
#pragma once
#include <map>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "modeling/moe/balancing.hpp"
#include "modeling/moe/topk_routing.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// topk: by score. sinkhorn, quantile: ways that balance by themselves, without a loss (both exclude the aux losses).
enum class Assignment { topk, sinkhorn, quantile };

struct RouterConfig {
  int64_t num_experts = 0;
  TopkOptions topk;
  Assignment assignment = Assignment::topk;
  // Coefficients of moe_router_load_balancing_type and moe_z_loss_coeff; 0: off.
  double aux_loss = 0, seq_aux_loss = 0, global_aux_loss = 0;
  double z_loss = 0;
  std::optional<double> capacity_factor;  // absent: dropless
  DropPolicy drop_policy = DropPolicy::probs;
  bool pad_to_capacity = false;
  bool expert_bias = false;  // of the selection; its tokens are counted
  // calculate_per_token_loss: losses are means over tokens, so that of a micro-batch is multiplied by its tokens.
  bool per_token_loss = false;
};

// Ranks that hold parts of the same sequences, and all ranks that hold tokens of the global batch. Default: one rank.
struct RouterGroups {
  Group tp_cp, tp_dp_cp;
};

struct RouteOptions {
  // bool [S, B] (true = padding) or undefined: does not count in losses, counters and capacity. Defined on all ranks of
  // a group or on none.
  at::Tensor padding{};
  at::Tensor selected{};  // int64 [T, k] or undefined: replayed experts
  bool training = true;
  at::Tensor expert_bias{};  // fp32 [E] for selection; undefined: none
  // int64 [T]: the sequence of each token, for seq_aux_loss over packed tokens; undefined: the B columns. Sequences are
  // numbered alike on the ranks of tp_cp.
  at::Tensor sequences{};
  int64_t num_sequences = 0;
  double loss_scale = 1.0;  // the gradient that an attached loss of 1 gets; the scale of the main loss
};

// Not thread-safe. Losses are attached and tokens counted in grad mode alone, so that log-prob passes and the first
// forward pass of a checkpointed block leave no trace.
class Router {
 public:
  // Throws Error when options contradict each other.
  explicit Router(const RouterConfig& config, at::Device device = at::kCPU, const RouterGroups& groups = {});

  const RouterConfig& config() const { return config_; }

  // logits [S, B, E] (packed tokens: [T, 1, E]) -> S * B tokens.
  Routing route(const at::Tensor& logits, const RouteOptions& options = {});

  // fp32 [E] tokens of this rank since they were forgotten; undefined unless config.expert_bias.
  const at::Tensor& tokens_per_expert() const { return tokens_per_expert_; }
  void forget_tokens();

  // Quantile balancing: sum over micro-batches of the local quantiles fp32 [E], and how many; beta fp32 [E].
  const at::Tensor& quantile_sum() const { return quantile_sum_; }
  int64_t quantile_count() const { return quantile_count_; }
  const at::Tensor& beta() const { return beta_; }

  // The running mean of global_aux_loss starts anew with a global batch.
  void start_global_batch();

  // Unscaled losses (coefficient 1) since the last call, summed over micro-batches, as Megatron names them in its log:
  // load_balancing_loss and seq_load_balancing_loss (to be summed over tp_cp), global_load_balancing_loss (summed over
  // tp_dp_cp), z_loss (averaged). `by_tokens`: the same sum of losses times the tokens that each is a mean over.
  struct LossSum {
    at::Tensor values, by_tokens;
  };
  std::map<std::string, LossSum> take_losses();

 private:
  // Tokens an expert and altogether, over a group.
  struct Counts {
    at::Tensor per_expert, total;
  };
  Counts count(const at::Tensor& map, int64_t topk, bool padded, const Group& group) const;

  Routing assign(const at::Tensor& logits, const RouteOptions& options);
  at::Tensor keep_to_capacity(const Routing& routing, const at::Tensor& padding) const;
  at::Tensor with_z_loss(const at::Tensor& logits, const at::Tensor& padding, const RouteOptions& options);
  at::Tensor with_aux_losses(at::Tensor probs, const at::Tensor& logits, const at::Tensor& padding, int64_t batch,
                             const RouteOptions& options);
  // `tokens`: those that the loss is a mean over.
  at::Tensor attach(const at::Tensor& to, const at::Tensor& loss, double coefficient, const at::Tensor& tokens,
                    const char* name, const RouteOptions& options);

  RouterConfig config_;
  RouterGroups groups_;
  at::Tensor tokens_per_expert_;
  at::Tensor global_counts_;  // of global_aux_loss
  int64_t global_steps_ = 0;
  at::Tensor beta_, quantile_sum_;
  int64_t quantile_count_ = 0;
  std::map<std::string, LossSum> losses_;
};

// The router's product in a layer: x [T, H] times weight [E, H] -> logits [T, E] of `dtype`, from factors and with sums
// of that type. row_tile as in apply_linear. For fp32 logits of 16-bit factors x itself is kept for the backward pass,
// and on a GPU multiplied as it is: products of two such factors are exact in fp32.
at::Tensor router_linear(const at::Tensor& x, const at::Tensor& weight, at::ScalarType dtype, int64_t row_tile = 0);

}  // namespace hexad::modeling
