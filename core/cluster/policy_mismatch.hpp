// How far the generator, the policy that a rollout is of and the policy that trains are apart. NeMo-RL's loss reports
// it; it needs no loss.
#pragma once
#include <array>
#include <deque>
#include <span>
#include <vector>

#include "core/cluster/tensor_view.hpp"
#include "core/plugin/host/staging.hpp"
#include "core/plugin/kind/loss_plugin.hpp"
#include "core/plugin/metric_sum.hpp"

namespace hexad::cluster {

// Of one token, the log-prob under each.
struct TokenPolicies {
  double current = 0, previous = 0, generation = 0;
};
// Both kinds of KL by its estimator k3.
inline constexpr std::array kMismatchMetrics = {"token_mult_prob_error", "gen_kl_error", "policy_kl_error",
                                                "js_divergence_error", "approx_entropy"};
// A metric each.
using Mismatch = std::array<double, kMismatchMetrics.size()>;
// Its part of each.
Mismatch mismatch_of(const TokenPolicies& token);

// The metrics of a train command, beside those that plugins report under the same names. They are means over the
// tokens that count, divided by the global batch's: they add up over micro-batches and ranks.
class PolicyMismatch {
 public:
  // `batch` is the command's: without a rollout's columns there is nothing to tell. Where the loss does not use
  // prev_logprobs, nobody has computed them, and the policy before is the current one.
  PolicyMismatch(const plugin::LossPlugin& loss, const data::Batch& batch, double global_valid_tokens);

  // Copies the log-probs that the backend has made of a micro-batch, where there are some. Waits for no device. `part`
  // is borrowed until add_to.
  void keep(const BatchView& part, std::span<const hexad_named_tensor> outputs);
  // Waits for the device.
  void add_to(plugin::MetricSum& metrics);

 private:
  struct Kept {
    const data::Batch* batch;
    DLTensor* logprobs;
  };
  void add(const data::Batch& batch, std::span<const float> logprobs, Mismatch& sums) const;

  const double per_token_;
  const bool knows_previous_;
  std::vector<size_t> told_;  // of kMismatchMetrics
  plugin::Staging staging_;
  std::deque<Kept> kept_;
};

}  // namespace hexad::cluster
