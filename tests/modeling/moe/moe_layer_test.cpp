// The sparse layer against the plain one, in which every expert sees every token.
#include "modeling/moe/moe_layer.hpp"

#include <doctest/doctest.h>

#include "modeling/error.hpp"
#include "modeling/moe/dispatch/permutation.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

constexpr int64_t kTokens = 29, kHidden = 12, kExperts = 5, kWidth = 7, kTopk = 2;

// x, router, then gate, up and down of each expert.
std::vector<at::Tensor> random_inputs() {
  std::vector<at::Tensor> inputs = {at::randn({kTokens, kHidden}), at::randn({kExperts, kHidden})};
  for (int64_t e = 0; e < kExperts; ++e) {
    for (int i = 0; i < 2; ++i) inputs.push_back(at::randn({kWidth, kHidden}) * 0.3);
    inputs.push_back(at::randn({kHidden, kWidth}) * 0.3);
  }
  return inputs;
}

MoeWeights weights_of(const std::vector<at::Tensor>& inputs, const Range& local = {0, kExperts}) {
  MoeWeights w;
  w.router = inputs[1];
  w.experts.local = local;
  for (int64_t e = local.begin; e < local.end; ++e) {
    w.experts.gate.push_back(inputs[2 + 3 * e]);
    w.experts.up.push_back(inputs[3 + 3 * e]);
    w.experts.down.push_back(inputs[4 + 3 * e]);
  }
  return w;
}

TopkOptions options() {
  TopkOptions o;
  o.topk = kTopk;
  return o;
}

at::Tensor every_expert_sees_every_token(const std::vector<at::Tensor>& in) {
  const at::Tensor& x = in[0];
  const at::Tensor all = at::softmax(at::linear(x, in[1]), -1);
  const auto [values, experts] = all.topk(kTopk, -1);
  const at::Tensor probs = at::zeros_like(all).scatter(1, experts, values / values.sum(-1, true));
  at::Tensor out = at::zeros_like(x);
  for (int64_t e = 0; e < kExperts; ++e) {
    const at::Tensor activation = at::silu(at::linear(x, in[2 + 3 * e])) * at::linear(x, in[3 + 3 * e]);
    out = out + probs.select(1, e).unsqueeze(1) * at::linear(activation, in[4 + 3 * e]);
  }
  return out;
}

TEST_CASE("routed experts equal the plain way, forward and backward") {
  const TensorFunction sparse = [](const std::vector<at::Tensor>& in) {
    return moe_forward(options(), weights_of(in), in[0]);
  };
  const std::vector<at::Tensor> inputs = random_inputs();
  for (const at::Device device : test_devices()) {
    check_op(sparse, every_expert_sees_every_token, inputs, device, at::kFloat, 1e-5);
    check_op(sparse, every_expert_sees_every_token, inputs, device, at::kBFloat16, 1.5e-2);
  }
}

TEST_CASE("ranges of experts contribute summands") {
  const std::vector<at::Tensor> inputs = random_inputs();
  const at::Tensor whole = moe_forward(options(), weights_of(inputs), inputs[0]);
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{0, 2, 5}, {0, 1, 1, 5}, {0, 3, 4, 5}}) {
    at::Tensor sum = at::zeros_like(whole);
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      sum += moe_forward(options(), weights_of(inputs, {cuts[i], cuts[i + 1]}), inputs[0]);
    CHECK(relative_distance(sum, whole) <= 1e-6);
  }
}

TEST_CASE("both ways to permute agree, forward and backward") {
  const at::Tensor logits = at::randn({kTokens, kExperts});
  const Routing routing = topk_routing(logits, options());
  const RoutingMatrix matrix = routing_matrix(routing, kExperts);
  const Permutation gathers = sort_by_expert(routing, kExperts), by_map = sort_by_expert(matrix.map);
  CHECK(gathers.tokens.equal(by_map.tokens));
  CHECK(gathers.ends.equal(by_map.ends));
  CHECK(permute_probs(routing.probs, gathers).equal(permute_probs(matrix.probs, by_map)));
  const auto run = [&](const Permutation& order) {
    return TensorFunction(
        [&](const std::vector<at::Tensor>& in) { return unpermute(permute(in[0], order).tanh(), order, in[1]); });
  };
  const std::vector<at::Tensor> inputs = {at::randn({kTokens, 3}), at::randn({kTokens * kTopk})};
  check_op(run(gathers), run(by_map), inputs, at::kCPU, at::kFloat, 1e-5);
}

TEST_CASE("a token that capacity drops gets nothing, and padding changes nothing") {
  const std::vector<at::Tensor> inputs = random_inputs();
  RouterConfig config;
  config.num_experts = kExperts, config.topk = options(), config.capacity_factor = 0.5;
  const int64_t capacity = expert_capacity(kTokens * kTopk, kExperts, 0.5);
  Router dropping(config);
  config.pad_to_capacity = true;
  Router padding(config);
  // Every token alike, so that all want the same experts and most find them full.
  const at::Tensor logits = at::linear(inputs[0].slice(0, 0, 1), inputs[1]).expand({kTokens, -1}).unsqueeze(1);
  const Routing kept = dropping.route(logits), padded = padding.route(logits);
  for (int64_t count : sort_by_expert(kept, kExperts).counts_on_host()) CHECK(count <= capacity);
  for (int64_t count : sort_by_expert(padded, kExperts).counts_on_host()) CHECK(count == capacity);
  const ExpertWeights experts = weights_of(inputs).experts;
  const at::Tensor out = run_local_experts(inputs[0], kept, kExperts, experts);
  CHECK(relative_distance(run_local_experts(inputs[0], padded, kExperts, experts), out) <= 1e-6);
  const at::Tensor lost = kept.kept.any(1).logical_not();
  CHECK(lost.any().item<bool>());
  CHECK(out.index({lost}).count_nonzero().item<int64_t>() == 0);
}

TEST_CASE("shared experts add, gated or not") {
  const std::vector<at::Tensor> inputs = random_inputs();
  const at::Tensor& x = inputs[0];
  MoeWeights w = weights_of(inputs);
  const at::Tensor routed = moe_forward(options(), w, x);
  w.shared_gate = inputs[2], w.shared_up = inputs[3], w.shared_down = inputs[4];
  const at::Tensor shared = at::linear(at::silu(at::linear(x, inputs[2])) * at::linear(x, inputs[3]), inputs[4]);
  CHECK(relative_distance(moe_forward(options(), w, x), routed + shared) <= 1e-5);
  w.shared_scale = at::randn({1, kHidden});
  const at::Tensor scale = at::sigmoid(at::linear(x, w.shared_scale));
  CHECK(relative_distance(moe_forward(options(), w, x), routed + scale * shared) <= 1e-5);
}

TEST_CASE("replayed experts are used whatever the router would choose") {
  const std::vector<at::Tensor> inputs = random_inputs();
  MoeRun run;
  run.route.selected = at::randint(0, kExperts - 1, {kTokens, 1}, at::kLong);
  run.route.selected = at::cat({run.route.selected, run.route.selected + 1}, 1);
  const Routing routing = topk_routing(at::linear(inputs[0], inputs[1]), options(), {}, run.route.selected);
  const at::Tensor want = run_local_experts(inputs[0], routing, kExperts, weights_of(inputs).experts);
  CHECK(relative_distance(moe_forward(options(), weights_of(inputs), inputs[0], run), want) <= 1e-6);
}

TEST_CASE("a token of -1 among replayed experts is routed as it would be") {
  for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid}) {
    TopkOptions o = options();
    o.score = score;
    const at::Tensor logits = at::randn({kTokens, kExperts});
    const Routing own = topk_routing(logits, o);
    at::Tensor selected = at::tensor({3, 1}, at::kLong).repeat({kTokens, 1});
    selected.slice(0, 0, 4).fill_(-1);
    const Routing replayed = topk_routing(logits, o, {}, selected);
    CHECK(at::equal(replayed.experts.slice(0, 0, 4), own.experts.slice(0, 0, 4)));
    CHECK(at::equal(replayed.probs.slice(0, 0, 4), own.probs.slice(0, 0, 4)));
    CHECK(at::equal(replayed.experts.slice(0, 4), selected.slice(0, 4)));
  }
}

TEST_CASE("no tokens give no tokens, and still a graph") {
  std::vector<at::Tensor> inputs = random_inputs();
  const at::Tensor x = at::zeros({0, kHidden}).requires_grad_(true);
  const at::Tensor out = moe_forward(options(), weights_of(inputs), x);
  CHECK(out.sizes() == x.sizes());
  out.sum().backward();
  CHECK(x.grad().sizes() == x.sizes());
}

TEST_CASE("log-prob passes leave no trace in the router") {
  RouterConfig config;
  config.num_experts = kExperts, config.topk = options(), config.topk.score = ScoreFunction::sigmoid;
  config.expert_bias = true, config.aux_loss = 0.1;
  Router router(config);
  const at::Tensor logits = at::randn({kTokens, 1, kExperts});
  {
    const at::NoGradGuard no_grad;
    router.route(logits);
  }
  CHECK(router.take_losses().empty());
  CHECK(router.tokens_per_expert().sum().item<double>() == 0);
  router.route(logits);
  CHECK(router.take_losses().size() == 1);
  CHECK(router.tokens_per_expert().sum().item<double>() == kTokens * kTopk);
  router.forget_tokens();
  CHECK(router.tokens_per_expert().sum().item<double>() == 0);
}

TEST_CASE("padding takes nobody's place in an expert") {
  const at::Tensor logits = at::randn({kTokens, 1, kExperts});
  RouterConfig config;
  config.num_experts = kExperts, config.topk = options(), config.capacity_factor = 0.7;
  for (const DropPolicy policy : {DropPolicy::probs, DropPolicy::position}) {
    config.drop_policy = policy;
    const at::Tensor want = Router(config).route(logits).kept;
    // Rows that would win every place stand in front.
    const at::Tensor front = at::full({4, 1, kExperts}, 50.0) + at::randn({4, 1, kExperts});
    RouteOptions padded;
    padded.padding = at::cat({at::ones({4, 1}, at::kBool), at::zeros({kTokens, 1}, at::kBool)});
    const at::Tensor kept = Router(config).route(at::cat({front, logits}), padded).kept;
    CHECK(kept.slice(0, 4).equal(want));
    CHECK(!kept.slice(0, 0, 4).any().item<bool>());
  }
}

TEST_CASE("packed sequences balance one by one, as columns of one length do") {
  constexpr int64_t kLength = 6, kColumns = 4;
  RouterConfig config;
  config.num_experts = kExperts, config.topk = options(), config.seq_aux_loss = 0.3;
  for (const bool per_token : {false, true}) {
    config.per_token_loss = per_token;
    const at::Tensor columns = at::randn({kLength, kColumns, kExperts}).requires_grad_(true);
    const at::Tensor packed = columns.detach().transpose(0, 1).reshape({-1, 1, kExperts}).requires_grad_(true);
    RouteOptions route;
    route.sequences = at::arange(kColumns).repeat_interleave(kLength), route.num_sequences = kColumns;
    Router by_column(config), by_sequence(config);
    (by_column.route(columns).probs.sum() * 0).backward();
    (by_sequence.route(packed, route).probs.sum() * 0).backward();
    const Router::LossSum of_columns = by_column.take_losses().at("seq_load_balancing_loss"),
                          of_sequences = by_sequence.take_losses().at("seq_load_balancing_loss");
    CHECK(of_columns.values.allclose(of_sequences.values));
    CHECK(of_columns.by_tokens.allclose(of_sequences.by_tokens));
    CHECK(columns.grad().abs().max().item<double>() > 1e-4);
    CHECK(relative_distance(packed.grad().view({kColumns, kLength, kExperts}).transpose(0, 1), columns.grad()) <= 1e-5);
  }
}

TEST_CASE("z-loss and the loss of sequences are means over tokens, whatever shares a micro-batch") {
  RouterConfig config;
  config.num_experts = kExperts, config.topk = options(), config.seq_aux_loss = 0.3, config.z_loss = 0.1;
  config.per_token_loss = true;
  const std::vector<int64_t> lengths = {7, 2, 3};
  const at::Tensor logits = at::randn({12, 1, kExperts}) * at::arange(1, 13).view({12, 1, 1}) / 4;
  const auto losses_of = [&](const std::vector<std::vector<int64_t>>& micro_batches) {
    Router router(config);
    int64_t begin = 0;
    for (const std::vector<int64_t>& part : micro_batches) {
      RouteOptions route;
      const at::Tensor repeats = at::tensor(part, at::kLong);
      route.num_sequences = static_cast<int64_t>(part.size());
      route.sequences = at::arange(route.num_sequences).repeat_interleave(repeats);
      const int64_t end = begin + route.sequences.size(0);
      router.route(logits.slice(0, begin, end), route);
      begin = end;
    }
    return router.take_losses();
  };
  const auto whole = losses_of({lengths}), parts = losses_of({{7}, {2, 3}}), single = losses_of({{7}, {2}, {3}});
  for (const char* name : {"z_loss", "seq_load_balancing_loss"}) {
    CAPTURE(name);
    CHECK(whole.at(name).by_tokens.allclose(whole.at(name).values * 12));
    CHECK(parts.at(name).by_tokens.allclose(whole.at(name).by_tokens));
    CHECK(single.at(name).by_tokens.allclose(whole.at(name).by_tokens));
    CHECK(!(parts.at(name).values / 2).allclose(whole.at(name).values));  // a mean of means is another number
  }
}

TEST_CASE("contradictions are refused with what was wanted") {
  const auto refuses = [](const char* message, const std::function<void(RouterConfig&)>& change) {
    RouterConfig config;
    config.num_experts = 8;
    change(config);
    CHECK_THROWS_WITH_AS(Router{config}, message, Error);
  };
  refuses("router: topk is 9, wanted 1 ... 8 (experts)", [](auto& c) { c.topk.topk = 9; });
  refuses("router: 8 experts do not form 3 equal groups",
          [](auto& c) { c.topk.num_groups = 3, c.topk.group_topk = 1; });
  refuses("router: group_topk is 5, wanted 1 ... 4 (groups)",
          [](auto& c) { c.topk.num_groups = 4, c.topk.group_topk = 5; });
  refuses("router: topk is 3, but 1 groups of 2 experts have 2",
          [](auto& c) { c.topk.num_groups = 4, c.topk.group_topk = 1, c.topk.topk = 3; });
  refuses("router: Sinkhorn and quantile balancing exclude the aux losses; set moe_aux_loss_coeff to 0",
          [](auto& c) { c.assignment = Assignment::sinkhorn, c.aux_loss = 0.1; });
  refuses("router: an expert bias needs the score function sigmoid or sqrtsoftplus",
          [](auto& c) { c.expert_bias = true; });
  refuses("router: moe_pad_expert_input_to_capacity needs moe_expert_capacity_factor",
          [](auto& c) { c.pad_to_capacity = true; });
  RouterConfig config;
  config.num_experts = 8;
  CHECK_THROWS_WITH_AS(Router{config}.route(at::zeros({3, 8})), "router: logits have shape [3, 8], wanted [S, B, 8]",
                       Error);
  const ExpertWeights weights = weights_of(random_inputs()).experts;
  CHECK_THROWS_WITH_AS(grouped_mlp(at::zeros({3, kHidden}), {1, 1, 0, 0, 0}, weights),
                       "experts: got 3 rows, but the counts sum to 2", Error);
  CHECK_THROWS_WITH_AS(grouped_mlp(at::zeros({3, kHidden}), {1, 2}, weights),
                       "experts: got counts of 2 experts and weights of 5, 5 and 5, wanted 5", Error);
}

}  // namespace
}  // namespace hexad::modeling
