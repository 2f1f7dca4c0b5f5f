// Routing, balancing, capacity and permutation against Megatron-Core.
#include <doctest/doctest.h>

#include "modeling/moe/balancing.hpp"
#include "modeling/moe/dispatch/permutation.hpp"
#include "modeling/moe/router.hpp"
#include "tests/modeling/support/golden_tensor.hpp"
#include "tests/modeling/support/thread_group.hpp"

namespace hexad::modeling {
namespace {

using golden::Json;

constexpr double kRelative = 1e-5, kAbsolute = 1e-6, kGradient = 1e-4;

std::vector<double> values(const at::Tensor& x) {
  const at::Tensor flat = x.detach().to(at::kDouble).contiguous().flatten();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

void check_tensor(const at::Tensor& got, const Json& want, double relative = kRelative) {
  const golden::Tensor expected = golden::tensor(want);
  CHECK(got.sizes().vec() == expected.shape);
  const double rounding = expected.dtype == "bf16" ? 1.0 / 128 : relative;
  golden::check_close(values(got), expected.data, rounding, kAbsolute);
}

at::Tensor leaf(const Json& json) { return to_tensor(json).requires_grad_(true); }

at::Tensor optional_tensor(const Json& inputs, const char* key) {
  return inputs.contains(key) ? to_tensor(inputs.at(key)) : at::Tensor();
}

ScoreFunction score_function(const std::string& name) {
  if (name == "softmax") return ScoreFunction::softmax;
  return name == "sigmoid" ? ScoreFunction::sigmoid : ScoreFunction::sqrt_softplus;
}

template <typename T>
T value(const Json& config, const char* key, T otherwise) {
  return config.contains(key) && !config.at(key).is_null() ? config.at(key).get<T>() : otherwise;
}

void check_topk_case(const Json& c) {
  const Json &config = c.at("config"), &inputs = c.at("inputs"), &want = c.at("expected");
  TopkOptions options;
  options.topk = config.at("topk");
  options.score = score_function(value<std::string>(config, "score_function", "softmax"));
  options.pre_softmax = value(config, "use_pre_softmax", false);
  options.scaling_factor = value(config, "scaling_factor", 1.0);
  options.num_groups = value(config, "num_groups", int64_t{0});
  options.group_topk = value(config, "group_topk", int64_t{0});
  const at::Tensor logits = leaf(inputs.at("logits"));
  check_topk(options, logits.size(1));
  const Routing routing = topk_routing(logits, options, optional_tensor(inputs, "expert_bias"));
  const RoutingMatrix matrix = routing_matrix(routing, logits.size(1));
  check_tensor(routing.experts, want.at("top_indices"));
  check_tensor(routing.probs, want.at("top_probs"));
  check_tensor(matrix.probs, want.at("probs"));
  check_tensor(matrix.map, want.at("routing_map"));
  (matrix.probs * to_tensor(inputs.at("grad_probs"))).sum().backward();
  check_tensor(logits.grad(), want.at("grad_logits"), kGradient);
  // Replaying the choice gives the same weights.
  const Routing replayed = topk_routing(logits, options, {}, routing.experts);
  CHECK(replayed.probs.equal(routing.probs));
}

// ---- The whole router
// ------------------------------------------------------------------------------------------------

double coefficient(const Json& config, const std::string& type) {
  const Json& types = config.at("moe_router_load_balancing_type");
  const Json& coefficients = config.at("moe_aux_loss_coeff");
  if (types.is_string()) return types == type ? coefficients.get<double>() : 0.0;
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i] == type) return coefficients[i].get<double>();
  return 0.0;
}

RouterConfig router_config(const Json& config) {
  RouterConfig c;
  c.num_experts = config.at("num_moe_experts");
  c.topk.topk = config.at("moe_router_topk");
  c.topk.score = score_function(value<std::string>(config, "moe_router_score_function", "softmax"));
  c.topk.pre_softmax = value(config, "moe_router_pre_softmax", false);
  c.topk.scaling_factor = value(config, "moe_router_topk_scaling_factor", 1.0);
  c.topk.num_groups = value(config, "moe_router_num_groups", int64_t{0});
  c.topk.group_topk = value(config, "moe_router_group_topk", int64_t{0});
  const Json& type = config.at("moe_router_load_balancing_type");
  if (type == "sinkhorn") c.assignment = Assignment::sinkhorn;
  if (type == "quantile_balancing") c.assignment = Assignment::quantile;
  c.aux_loss = coefficient(config, "aux_loss");
  c.seq_aux_loss = coefficient(config, "seq_aux_loss");
  c.global_aux_loss = coefficient(config, "global_aux_loss");
  c.z_loss = value(config, "moe_z_loss_coeff", 0.0);
  if (config.contains("moe_expert_capacity_factor")) c.capacity_factor = config.at("moe_expert_capacity_factor");
  if (value<std::string>(config, "moe_token_drop_policy", "probs") == "position") c.drop_policy = DropPolicy::position;
  c.pad_to_capacity = value(config, "moe_pad_expert_input_to_capacity", false);
  c.expert_bias = value(config, "moe_router_enable_expert_bias", false);
  c.per_token_loss = value(config, "calculate_per_token_loss", false);
  return c;
}

// fragile: capacity chose among equal entries; only how many each expert keeps is specified.
// config, bias: of the whole case.
void check_micro_batch(Router& router, const Json& config, const at::Tensor& bias, const Json& inputs, const Json& want,
                       bool fragile) {
  const bool with_grad = inputs.contains("grad_probs");
  const at::AutoGradMode mode(with_grad);
  const at::Tensor logits = to_tensor(inputs.at("logits")).requires_grad_(with_grad);
  RouteOptions options;
  options.padding = optional_tensor(inputs, "padding_mask");
  options.expert_bias = bias;
  options.loss_scale = value(config, "main_loss_backward_scale", 1.0);
  const Routing routing = router.route(logits, options);
  const RoutingMatrix matrix = routing_matrix(routing, logits.size(2));
  if (fragile) {
    CHECK(matrix.map.sum(0).equal(to_tensor(want.at("routing_map")).sum(0)));
    return;
  }
  check_tensor(matrix.probs, want.at("probs"));
  check_tensor(matrix.map, want.at("routing_map"));
  const Json& metrics = want.at(want.contains("metrics") ? "metrics" : "metrics_before_reduction");
  const auto losses = router.take_losses();
  CHECK(losses.size() == metrics.size());
  for (const auto& [name, metric] : metrics.items())
    CHECK(losses.at(name).values.item<double>() == doctest::Approx(golden::number(metric)).epsilon(kRelative));
  if (!with_grad) return;
  (matrix.probs * to_tensor(inputs.at("grad_probs"))).sum().backward();
  check_tensor(logits.grad(), want.at("grad_logits"), kGradient);
}

void check_gate(const RouterConfig& config, const Json& c) {
  const Json &inputs = c.at("inputs"), &want = c.at("expected");
  const at::Tensor hidden = leaf(inputs.at("hidden")), weight = leaf(inputs.at("weight"));
  const std::string dtype = value<std::string>(c.at("config"), "moe_router_dtype", "");
  const at::ScalarType type = dtype == "fp64" ? at::kDouble : dtype == "fp32" ? at::kFloat : hidden.scalar_type();
  Router router(config);
  const at::Tensor logits = router_linear(hidden.flatten(0, 1), weight, type);  // [S B, E]
  const at::Tensor of_batch = logits.view({hidden.size(0), hidden.size(1), -1});
  const RoutingMatrix matrix = routing_matrix(router.route(of_batch), config.num_experts);
  check_tensor(matrix.probs, want.at("probs"));
  check_tensor(matrix.map, want.at("routing_map"));
  (matrix.probs * to_tensor(inputs.at("grad_probs"))).sum().backward();
  check_tensor(hidden.grad(), want.at("grad_hidden"), kGradient);
  check_tensor(weight.grad(), want.at("grad_weight"), kGradient);
}

void check_router(const Json& c) {
  const Json &inputs = c.at("inputs"), &want = c.at("expected");
  const RouterConfig config = router_config(c.at("config"));
  if (inputs.contains("hidden")) return check_gate(config, c);
  Router router(config);
  const at::Tensor bias = optional_tensor(inputs, "expert_bias");
  for (size_t i = 0; i < inputs.at("micro_batches").size(); ++i)
    check_micro_batch(router, c.at("config"), bias, inputs.at("micro_batches")[i], want.at("micro_batches")[i],
                      c.contains("fragile"));
  if (want.contains("local_tokens_per_expert"))
    check_tensor(router.tokens_per_expert(), want.at("local_tokens_per_expert"));
  if (want.contains("qb_beta_accum")) {
    check_tensor(router.quantile_sum(), want.at("qb_beta_accum"));
    CHECK(router.quantile_count() == want.at("qb_beta_count").get<int64_t>());
  }
}

void check_distributed(const Json& c) {
  const Json& config = c.at("config");
  const auto tp_cp = thread_groups(config.at("tp_cp_groups").get<std::vector<std::vector<int>>>());
  const auto all = thread_groups({config.at("tp_dp_cp_group").get<std::vector<int>>()});
  const Json &inputs = c.at("inputs").at("ranks"), &want = c.at("expected").at("ranks");
  run_ranks(int(inputs.size()), [&](int rank) {
    const RouterGroups groups = {Group(tp_cp.at(rank).get()), Group(all.at(rank).get())};
    Router router(router_config(config), at::kCPU, groups);
    const Json &batches = inputs[rank].at("micro_batches"), &results = want[rank].at("micro_batches");
    for (size_t i = 0; i < batches.size(); ++i)
      check_micro_batch(router, config, {}, batches[i], results[i], c.contains("fragile"));
  });
}

// ---- Functions
// -------------------------------------------------------------------------------------------------------

void check_switch_loss(const Json& c) {
  const Json &config = c.at("config"), &inputs = c.at("inputs");
  const at::Tensor probs = leaf(inputs.at("probs"));
  const at::Tensor total = at::scalar_tensor(config.at("total_num_tokens").get<double>(), at::kFloat);
  const at::Tensor loss = switch_loss(probs, to_tensor(inputs.at("tokens_per_expert")), total, config.at("topk"),
                                      config.at("num_experts"), config.at("moe_aux_loss_coeff"));
  CHECK(loss.item<double>() == doctest::Approx(golden::number(c.at("expected").at("loss"))).epsilon(kRelative));
  loss.backward();
  check_tensor(probs.grad(), c.at("expected").at("grad_probs"));
}

void check_bias_update(const Json& c) {
  const Json& inputs = c.at("inputs");
  check_tensor(updated_expert_bias(to_tensor(inputs.at("expert_bias")), to_tensor(inputs.at("tokens_per_expert")),
                                   c.at("config").at("moe_router_bias_update_rate")),
               c.at("expected").at("expert_bias"));
}

void check_capacity(const Json& c) {
  const Json &config = c.at("config"), &inputs = c.at("inputs");
  CHECK(expert_capacity(inputs.at("num_tokens"), inputs.at("num_experts"), config.at("capacity_factor"),
                        value(config, "min_capacity", int64_t{0})) == c.at("expected").at("capacity").get<int64_t>());
}

void check_drop(const Json& c) {
  const Json &config = c.at("config"), &inputs = c.at("inputs"), &want = c.at("expected");
  const RoutingMatrix matrix = {to_tensor(inputs.at("probs")), to_tensor(inputs.at("routing_map"))};
  const DropPolicy policy = config.at("moe_token_drop_policy") == "probs" ? DropPolicy::probs : DropPolicy::position;
  const int64_t pairs = matrix.map.size(0) * config.at("moe_router_topk").get<int64_t>();
  const int64_t capacity = expert_capacity(pairs, matrix.map.size(1), config.at("moe_expert_capacity_factor"));
  const at::Tensor kept = capacity_map(matrix, capacity, policy, config.at("moe_pad_expert_input_to_capacity"));
  if (c.contains("fragile")) {
    CHECK(kept.sum(0).equal(to_tensor(want.at("routing_map")).sum(0)));
    return;
  }
  check_tensor(kept, want.at("routing_map"));
  check_tensor(matrix.probs * kept, want.at("probs"));
}

void check_permute(const Json& c) {
  const Json &inputs = c.at("inputs"), &want = c.at("expected");
  const at::Tensor tokens = leaf(inputs.at("tokens")), probs = leaf(inputs.at("probs"));
  const Permutation order = sort_by_expert(to_tensor(inputs.at("routing_map")));
  const at::Tensor rows = permute(tokens, order), row_probs = permute_probs(probs, order);
  check_tensor(rows, want.at("permuted_tokens"));
  check_tensor(row_probs, want.at("permuted_probs"));
  check_tensor(order.tokens, want.at("sorted_indices"));
  check_tensor(unpermute(rows * row_probs.unsqueeze(1), order), want.at("unpermuted_sum_of_weighted"));
  const at::Tensor back = unpermute(rows, order, row_probs);
  check_tensor(back, want.at("unpermuted_with_probs"));
  (back * to_tensor(inputs.at("grad_output"))).sum().backward();
  check_tensor(tokens.grad(), want.at("grad_tokens"));
  check_tensor(probs.grad(), want.at("grad_probs"));
}

// Chunks are sorted as rows are by expert: the expert of a row is the place of its chunk.
void check_sort_chunks(const Json& c) {
  const auto list = [&](const char* key) {
    return at::tensor(c.at("inputs").at(key).at("data").get<std::vector<int64_t>>(), at::kLong);
  };
  const at::Tensor order = list("sorted_idxs"), places = at::argsort(order);
  const at::Tensor place = at::repeat_interleave(places, list("split_sizes")).unsqueeze(1);
  const Permutation sorted = sort_by_expert({at::ones(place.sizes()), place, {}}, order.size(0));
  check_tensor(permute(to_tensor(c.at("inputs").at("input")), sorted), c.at("expected").at("output"));
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("mixture-of-experts routing equals Megatron-Core's") {
    const std::map<std::string, void (*)(const Json&)> checks = {
        {"topk", check_topk_case},
        {"router", check_router},
        {"distributed", check_distributed},
        {"switch_loss", check_switch_loss},
        {"expert_bias_update", check_bias_update},
        {"capacity", check_capacity},
        {"drop", check_drop},
        {"permute", check_permute},
        {"sort_chunks", check_sort_chunks},
        {"pad_routing_map", [](const Json& c) {
           check_tensor(pad_routing_map(to_tensor(c.at("inputs").at("routing_map")), c.at("config").at("pad_multiple")),
                        c.at("expected").at("routing_map"));
         }}};
    golden::for_each_case(
        "moe_routing", [&](const Json& c) { checks.at(golden::prefix(c))(c); },
        [&](const Json& c) { return checks.contains(golden::prefix(c)); });
  }
}

}  // namespace hexad::modeling
