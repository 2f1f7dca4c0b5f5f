#include "modeling/moe/router.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/error.hpp"
#include "modeling/moe/assignment.hpp"
#include "modeling/moe/expert_bias.hpp"

namespace hexad::modeling {
namespace {

at::Tensor sum_over(const at::Tensor& counts, const Group& group) {
  at::Tensor sum = counts.clone();
  group.all_reduce(sum).wait();
  return sum;
}

at::Tensor flat_mask(const at::Tensor& mask) { return mask.defined() ? mask.reshape({-1}) : mask; }

void check_router_config(const RouterConfig& config) {
  check_topk(config.topk, config.num_experts);
  const bool aux = config.aux_loss != 0 || config.seq_aux_loss != 0 || config.global_aux_loss != 0;
  if (config.assignment != Assignment::topk && aux)
    fail("router: Sinkhorn and quantile balancing exclude the aux losses; set moe_aux_loss_coeff to 0");
  if (config.assignment != Assignment::topk && config.topk.num_groups > 0)
    fail("router: Sinkhorn and quantile balancing exclude group-limited routing");
  if (config.assignment == Assignment::quantile && config.topk.topk >= config.num_experts)
    fail("router: quantile balancing needs fewer than all {} experts a token, topk is {}", config.num_experts,
         config.topk.topk);
  if (config.expert_bias && config.topk.score == ScoreFunction::softmax)
    fail("router: an expert bias needs the score function sigmoid or sqrtsoftplus");
  if (config.pad_to_capacity && !config.capacity_factor)
    fail("router: moe_pad_expert_input_to_capacity needs moe_expert_capacity_factor");
}

}  // namespace

Router::Router(const RouterConfig& config, at::Device device, const RouterGroups& groups)
    : config_(config), groups_(groups) {
  check_router_config(config);
  const auto zeros = [&] { return at::zeros({config.num_experts}, at::TensorOptions(device).dtype(at::kFloat)); };
  if (config.expert_bias) expert_bias_ = zeros(), tokens_per_expert_ = zeros();
  if (config.global_aux_loss != 0) global_counts_ = zeros();
  if (config.assignment == Assignment::quantile) beta_ = zeros(), quantile_sum_ = zeros();
}

void Router::set_expert_bias(const at::Tensor& bias) {
  const at::NoGradGuard no_grad;
  expert_bias_.copy_(bias);
}

Routing Router::route(const at::Tensor& input, const RouteOptions& options) {
  if (input.dim() != 3 || input.size(2) != config_.num_experts)
    fail("router: logits have shape [{}], wanted [S, B, {}]", fmt::join(input.sizes(), ", "), config_.num_experts);
  const at::Tensor padding = flat_mask(options.padding);
  const bool with_grad = at::GradMode::is_enabled();
  at::Tensor logits = input.reshape({-1, config_.num_experts});
  if (config_.z_loss != 0 && options.training && with_grad) logits = with_z_loss(logits, padding);
  Routing routing = assign(logits, options);
  if (config_.capacity_factor)
    routing.kept = capacity_map(routing_matrix(routing, config_.num_experts), config_.topk.topk,
                                *config_.capacity_factor, config_.drop_policy, config_.pad_to_capacity);
  if (options.training && with_grad) routing.probs = with_aux_losses(routing.probs, logits, padding, input.size(1));
  if (config_.expert_bias && with_grad) {
    const at::NoGradGuard no_grad;
    at::Tensor map = routing_matrix(routing, config_.num_experts).map;
    if (padding.defined()) map = map.logical_and(padding.logical_not().unsqueeze(-1));
    tokens_per_expert_ += map.sum(0);
  }
  return routing;
}

Routing Router::assign(const at::Tensor& logits, const RouteOptions& options) {
  if (options.selected.defined() || config_.assignment == Assignment::topk)
    return topk_routing(logits, config_.topk, expert_bias_, options.selected);
  if (config_.assignment == Assignment::sinkhorn) return sinkhorn_routing(logits, config_.topk.topk, options.training);
  const QuantileSelection choice = quantile_selection(logits, config_.topk.topk, beta_, groups_.tp_cp);
  if (options.training && at::GradMode::is_enabled()) {
    quantile_sum_ += choice.quantile;
    ++quantile_count_;
  }
  return topk_routing(logits, config_.topk, {}, choice.experts);
}

at::Tensor Router::with_z_loss(const at::Tensor& logits, const at::Tensor& padding) {
  // Every rank of tp_cp has its own tokens: their mean, not their sum, is wanted.
  const double coefficient = config_.z_loss / double(groups_.tp_cp.size());
  const at::Tensor tokens =
      padding.defined() ? padding.logical_not().sum() : at::scalar_tensor(logits.size(0), at::kLong);
  return attach(logits, z_loss(logits, coefficient, padding), coefficient, tokens, "z_loss");
}

Router::Counts Router::count(const at::Tensor& map, int64_t topk, bool padded, const Group& group) const {
  const at::NoGradGuard no_grad;
  const at::Tensor local = map.sum(0).to(at::kFloat), all = sum_over(local, group);
  if (padded) return {all, all.sum() / topk, local.sum() / topk};
  const auto scalar = [](int64_t value) { return at::scalar_tensor(value, at::kFloat); };
  return {all, scalar(map.size(0) * group.size()), scalar(map.size(0))};
}

at::Tensor Router::with_aux_losses(at::Tensor probs, const at::Tensor& logits, const at::Tensor& padding,
                                   int64_t batch) {
  const RouterConfig& c = config_;
  if (c.aux_loss == 0 && c.seq_aux_loss == 0 && c.global_aux_loss == 0) return probs;
  const int64_t topk = c.topk.topk, experts = c.num_experts;
  const bool padded = padding.defined();
  const BalancingScores all = balancing_scores(logits, topk, c.topk.score, padding);
  if (c.aux_loss != 0) {
    const Counts n = count(all.map, topk, padded, groups_.tp_cp);
    const at::Tensor loss = switch_loss(all.scores, n.per_expert, n.total, topk, experts, c.aux_loss);
    probs = attach(probs, loss, c.aux_loss, n.local, "load_balancing_loss");
  }
  if (c.seq_aux_loss != 0) {
    // Sequences become columns: the loss of all is the sum over sequences, and their mean is wanted.
    const at::Tensor scores = all.scores.reshape({-1, batch * experts}), map = all.map.reshape({-1, batch * experts});
    const Counts n = count(map, topk * batch, padded, groups_.tp_cp);
    const at::Tensor loss = switch_loss(scores, n.per_expert, n.total, topk, experts, c.seq_aux_loss) / batch;
    probs = attach(probs, loss, c.seq_aux_loss, n.local * batch, "seq_load_balancing_loss");
  }
  if (c.global_aux_loss != 0) {
    const Counts n = count(all.map, topk, padded, groups_.tp_dp_cp);
    global_counts_ += n.per_expert;
    ++global_steps_;
    const at::Tensor loss =
        switch_loss(all.scores, global_counts_ / global_steps_, n.total, topk, experts, c.global_aux_loss);
    probs = attach(probs, loss, c.global_aux_loss, n.local, "global_load_balancing_loss");
  }
  return probs;
}

at::Tensor Router::attach(const at::Tensor& to, const at::Tensor& loss, double coefficient,
                          const at::Tensor& local_tokens, const char* name) {
  const at::Tensor unscaled = loss.detach() / coefficient;
  at::Tensor& logged = losses_[name];
  logged = logged.defined() ? logged + unscaled : unscaled;
  return attach_loss(to, config_.per_token_loss ? loss * local_tokens * groups_.tp_cp.size() : loss, loss_scale_);
}

void Router::update_expert_bias() {
  if (!config_.expert_bias) return;
  const at::Tensor counts = sum_over(tokens_per_expert_, groups_.tp_dp_cp);
  set_expert_bias(updated_expert_bias(expert_bias_, counts, config_.bias_update_rate));
  tokens_per_expert_.zero_();
}

void Router::start_global_batch() {
  global_steps_ = 0;
  if (global_counts_.defined()) global_counts_.zero_();
}

std::map<std::string, at::Tensor> Router::take_losses() { return std::exchange(losses_, {}); }

at::Tensor router_logits(const at::Tensor& hidden, const at::Tensor& weight, at::ScalarType dtype) {
  return at::linear(hidden.to(dtype), weight.to(dtype));
}

}  // namespace hexad::modeling
