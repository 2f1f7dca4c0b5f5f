#include "modeling/moe/router.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/error.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/linear.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

struct RouterLinear : Function<RouterLinear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight) {
    ctx->save_for_backward({x, weight});
    // CUDA alone has 16-bit products of another type.
    return x.is_cuda() ? at::mm(x, weight.t(), at::kFloat) : at::mm(x.to(at::kFloat), weight.t().to(at::kFloat));
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], grad = grads[0].contiguous();
    variable_list result(2);
    if (ctx->needs_input_grad(0)) result[0] = at::mm(grad, weight.to(at::kFloat)).to(x.scalar_type());
    if (!weight.requires_grad()) return result;
    if (const at::Tensor sum = grad_sum_of(weight); sum.defined()) {
      accumulate_product(sum, grad, x.to(at::kFloat));
    } else {
      result[1] = at::mm(grad.t(), x.to(at::kFloat)).to(weight.scalar_type());
    }
    return result;
  }
};

constexpr double kSinkhornEps = 1e-8;
constexpr int kMaxSinkhornIterations = 10000;  // logits that are not finite would never converge

// exp(logits) [T, E] scaled by rows and columns towards equal sums (Sinkhorn, as in Megatron-Core): iterated until the
// column factors move by less than `tolerance` on average. fp32, not differentiable.
at::Tensor sinkhorn(const at::Tensor& logits, double tolerance = 1e-4) {
  const at::NoGradGuard no_grad;
  const at::Tensor cost = logits.to(at::kFloat).exp();
  const double rows = double(cost.size(0)), columns = double(cost.size(1));
  at::Tensor row_factor, column_factor = at::ones({cost.size(1)}, cost.options());
  for (int i = 0; i < kMaxSinkhornIterations; ++i) {
    row_factor = (1 / rows) / ((column_factor * cost).sum(1) + kSinkhornEps);
    const at::Tensor next = (1 / columns) / ((row_factor.unsqueeze(1) * cost).sum(0) + kSinkhornEps);
    const double moved = (next - column_factor).abs().mean().item<double>();
    column_factor = next;
    if (!(moved > tolerance)) break;
  }
  return column_factor * cost * row_factor.unsqueeze(1);
}

// Experts by Sinkhorn while training and by score otherwise; the weights are the sigmoid (topk 1) or the softmax over
// all experts.
Routing sinkhorn_routing(const at::Tensor& logits, int64_t topk, bool training) {
  const at::Tensor scores =
      topk == 1 ? at::sigmoid(logits) : at::softmax(logits, -1, at::kFloat).to(logits.scalar_type());
  const at::Tensor ranked = training ? sinkhorn(logits.detach()) : scores.detach();
  const at::Tensor experts = std::get<1>(ranked.topk(topk, 1));
  return {scores.gather(1, experts), experts, {}};
}

// Quantile balancing (Megatron-Core's qb_dual_update): each token takes the topk best of logits - beta. `quantile`
// is the beta that would have given each expert its share of these tokens.
struct QuantileSelection {
  at::Tensor experts;   // int64 [T, k]
  at::Tensor quantile;  // fp32 [E]
};
// beta: fp32 [E]. topk is less than E. The share is that of the tokens of all ranks of `group`, which hold equally
// many.
QuantileSelection quantile_selection(const at::Tensor& logits, int64_t topk, const at::Tensor& beta,
                                     const Group& group) {
  const at::NoGradGuard no_grad;
  const at::Tensor local = logits.detach().to(at::kFloat).contiguous();
  at::Tensor all = local;
  if (group.size() > 1) {
    all = at::empty({group.size() * local.size(0), local.size(1)}, local.options());
    group.all_gather(all, local).wait();
  }
  const auto [values, indices] = (all - beta).topk(topk + 1, 1);
  const at::Tensor first_left_out = values.slice(1, topk);
  const int64_t share = all.size(0) * topk / all.size(1);
  const at::Tensor quantile = std::get<0>((all - first_left_out).topk(share + 1, 0))[share];
  const int64_t begin = group.rank() * local.size(0);
  return {indices.slice(0, begin, begin + local.size(0)).slice(1, 0, topk).contiguous(), quantile};
}

}  // namespace

Router::Router(const RouterConfig& config, at::Device device, const RouterGroups& groups)
    : config_(config), groups_(groups) {
  check_router_config(config);
  const auto zeros = [&] { return at::zeros({config.num_experts}, at::TensorOptions(device).dtype(at::kFloat)); };
  if (config.expert_bias) tokens_per_expert_ = zeros();
  if (config.global_aux_loss != 0) global_counts_ = zeros();
  if (config.assignment == Assignment::quantile) beta_ = zeros(), quantile_sum_ = zeros();
}

void Router::forget_tokens() {
  if (tokens_per_expert_.defined()) tokens_per_expert_.zero_();
}

Routing Router::route(const at::Tensor& input, const RouteOptions& options) {
  if (input.dim() != 3 || input.size(2) != config_.num_experts)
    fail("router: logits have shape [{}], wanted [S, B, {}]", fmt::join(input.sizes(), ", "), config_.num_experts);
  const at::Tensor padding = flat_mask(options.padding);
  const bool with_grad = at::GradMode::is_enabled();
  at::Tensor logits = input.reshape({-1, config_.num_experts});
  if (config_.z_loss != 0 && options.training && with_grad) logits = with_z_loss(logits, padding, options);
  Routing routing = assign(logits, options);
  if (config_.capacity_factor) routing.kept = keep_to_capacity(routing, padding);
  if (options.training && with_grad)
    routing.probs = with_aux_losses(routing.probs, logits, padding, input.size(1), options);
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
    return topk_routing(logits, config_.topk, options.expert_bias, options.selected);
  if (config_.assignment == Assignment::sinkhorn) return sinkhorn_routing(logits, config_.topk.topk, options.training);
  const QuantileSelection choice = quantile_selection(logits, config_.topk.topk, beta_, groups_.tp_cp);
  if (options.training && at::GradMode::is_enabled()) {
    quantile_sum_ += choice.quantile;
    ++quantile_count_;
  }
  return topk_routing(logits, config_.topk, {}, choice.experts);
}

// Padding takes nobody's place.
at::Tensor Router::keep_to_capacity(const Routing& routing, const at::Tensor& padding) const {
  const at::NoGradGuard no_grad;
  RoutingMatrix matrix = routing_matrix(routing, config_.num_experts);
  int64_t tokens = matrix.map.size(0);
  if (padding.defined()) {
    const at::Tensor valid = padding.logical_not();
    matrix = {matrix.probs * valid.unsqueeze(-1), matrix.map.logical_and(valid.unsqueeze(-1))};
    tokens = valid.sum().item<int64_t>();
  }
  const int64_t capacity = expert_capacity(tokens * config_.topk.topk, config_.num_experts, *config_.capacity_factor);
  return capacity_map(matrix, capacity, config_.drop_policy, config_.pad_to_capacity);
}

at::Tensor Router::with_z_loss(const at::Tensor& logits, const at::Tensor& padding, const RouteOptions& options) {
  const int64_t ranks = groups_.tp_cp.size();
  at::Tensor tokens = at::scalar_tensor(logits.size(0) * ranks, logits.options().dtype(at::kFloat));
  if (padding.defined()) tokens = sum_over(padding.logical_not().sum().to(at::kFloat), groups_.tp_cp);
  // A summand of the mean over the tokens of tp_cp.
  const at::Tensor loss = z_loss(logits, config_.z_loss, tokens, padding);
  return attach(logits, loss, config_.z_loss / double(ranks), tokens, "z_loss", options);
}

Router::Counts Router::count(const at::Tensor& map, int64_t topk, bool padded, const Group& group) const {
  const at::NoGradGuard no_grad;
  const at::Tensor all = sum_over(map.sum(0).to(at::kFloat), group);
  if (padded) return {all, all.sum() / topk};
  return {all, at::scalar_tensor(map.size(0) * group.size(), all.options())};
}

at::Tensor Router::with_aux_losses(at::Tensor probs, const at::Tensor& logits, const at::Tensor& padding, int64_t batch,
                                   const RouteOptions& options) {
  const RouterConfig& c = config_;
  if (c.aux_loss == 0 && c.seq_aux_loss == 0 && c.global_aux_loss == 0) return probs;
  const int64_t topk = c.topk.topk, experts = c.num_experts;
  const bool padded = padding.defined();
  const BalancingScores all = balancing_scores(logits, topk, c.topk.score, padding);
  if (c.aux_loss != 0) {
    const Counts n = count(all.map, topk, padded, groups_.tp_cp);
    const at::Tensor loss = switch_loss(all.scores, n.per_expert, n.total, topk, experts, c.aux_loss);
    probs = attach(probs, loss, c.aux_loss, n.total, "load_balancing_loss", options);
  }
  if (c.seq_aux_loss != 0 && options.sequences.defined()) {
    const at::Tensor counts =
        sum_over(sum_of_sequences(all.map.to(at::kFloat), options.sequences, options.num_sequences), groups_.tp_cp);
    const at::Tensor scores = sum_of_sequences(all.scores, options.sequences, options.num_sequences);
    const at::Tensor loss = sequences_loss(scores, counts, topk, c.seq_aux_loss);
    probs = attach(probs, loss, c.seq_aux_loss, counts.sum() / topk, "seq_load_balancing_loss", options);
  } else if (c.seq_aux_loss != 0) {
    // Sequences become columns: the loss of all is the sum over sequences, and their mean is wanted.
    const at::Tensor scores = all.scores.reshape({-1, batch * experts}), map = all.map.reshape({-1, batch * experts});
    const Counts n = count(map, topk * batch, padded, groups_.tp_cp);
    const at::Tensor loss = switch_loss(scores, n.per_expert, n.total, topk, experts, c.seq_aux_loss) / batch;
    probs = attach(probs, loss, c.seq_aux_loss, n.total * batch, "seq_load_balancing_loss", options);
  }
  if (c.global_aux_loss != 0) {
    const Counts n = count(all.map, topk, padded, groups_.tp_dp_cp);
    global_counts_ += n.per_expert;
    ++global_steps_;
    const at::Tensor loss =
        switch_loss(all.scores, global_counts_ / global_steps_, n.total, topk, experts, c.global_aux_loss);
    probs = attach(probs, loss, c.global_aux_loss, n.total, "global_load_balancing_loss", options);
  }
  return probs;
}

at::Tensor Router::attach(const at::Tensor& to, const at::Tensor& loss, double coefficient, const at::Tensor& tokens,
                          const char* name, const RouteOptions& options) {
  const at::Tensor unscaled = loss.detach() / coefficient;
  const auto [logged, is_first] = losses_.try_emplace(name, LossSum{unscaled, unscaled * tokens});
  if (!is_first) {
    LossSum& sum = logged->second;
    sum = {sum.values + unscaled, sum.by_tokens + unscaled * tokens};
  }
  return attach_loss(to, config_.per_token_loss ? loss * tokens : loss, options.loss_scale);
}

void Router::start_global_batch() {
  global_steps_ = 0;
  if (global_counts_.defined()) global_counts_.zero_();
}

std::map<std::string, Router::LossSum> Router::take_losses() { return std::exchange(losses_, {}); }

at::Tensor router_linear(const at::Tensor& x, const at::Tensor& weight, at::ScalarType dtype, int64_t row_tile) {
  const bool narrow = x.element_size() == 2 && weight.scalar_type() == x.scalar_type();
  if (row_tile == 0 && dtype == at::kFloat && narrow) return RouterLinear::apply(x, weight);
  return apply_linear(x.to(dtype), weight.to(dtype), {}, row_tile);
}

}  // namespace hexad::modeling
