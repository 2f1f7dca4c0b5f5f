// Experts over ranks equal experts on one: values, and gradients of tokens, router probabilities and weights.
#include "modeling/moe/dispatch/expert_dispatcher.hpp"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "modeling/error.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/ranks.hpp"

namespace hexad::modeling {
namespace {

constexpr int64_t kHidden = 6, kExperts = 4, kWidth = 8, kTopk = 2;

at::Tensor leaf(const at::Tensor& values) { return values.detach().clone().requires_grad_(true); }

// Tokens of all ranks, end to end, and where they go.
struct Layer {
  at::Tensor tokens, probs, experts, kept, grad;
  std::vector<at::Tensor> gate, up, down;

  // `reach`: experts beyond it get no token.
  Layer(int64_t count, int64_t reach) {
    tokens = at::randn({count, kHidden});
    probs = at::rand({count, kTopk});
    experts = std::get<1>(at::rand({count, reach}).topk(kTopk, 1));
    grad = at::randn({count, kHidden});
    for (int64_t e = 0; e < kExperts; ++e) {
      gate.push_back(at::randn({kWidth, kHidden}));
      up.push_back(at::randn({kWidth, kHidden}));
      down.push_back(at::randn({kHidden, kWidth}));
    }
  }
};

// Output, then the gradients of tokens, probabilities, gate, up and down of each expert of `local`.
std::vector<at::Tensor> run(const Layer& layer, const Range& tokens, const Range& local, const Range& columns,
                            ExpertDispatcher* dispatcher) {
  const auto mine = [&](const at::Tensor& x) { return x.defined() ? x.slice(0, tokens.begin, tokens.end) : x; };
  std::vector<at::Tensor> in = {leaf(mine(layer.tokens)), leaf(mine(layer.probs))};
  ExpertWeights weights;
  weights.local = local;
  for (int64_t e = local.begin; e < local.end; ++e) {
    const auto i = static_cast<size_t>(e);
    in.push_back(leaf(layer.gate[i].slice(0, columns.begin, columns.end)));
    weights.gate.push_back(in.back());
    in.push_back(leaf(layer.up[i].slice(0, columns.begin, columns.end)));
    weights.up.push_back(in.back());
    in.push_back(leaf(layer.down[i].slice(1, columns.begin, columns.end)));
    weights.down.push_back(in.back());
  }
  const Routing routing{in[1], mine(layer.experts), mine(layer.kept)};
  const at::Tensor out = dispatcher ? dispatcher->run(in[0], routing, kExperts, weights)
                                    : run_local_experts(in[0], routing, kExperts, weights);
  std::vector<at::Tensor> result = torch::autograd::grad({out}, in, {mine(layer.grad)}, false, false, true);
  for (size_t i = 0; i < in.size(); ++i)
    if (!result[i].defined()) result[i] = at::zeros_like(in[i]);
  result.insert(result.begin(), out.detach());
  return result;
}

// counts: tokens of each rank.
template <typename Dispatcher>
void check(const std::vector<int64_t>& counts, int64_t tensor_ranks, int64_t reach, bool capacity = false) {
  at::manual_seed(11);
  const int64_t total = at::tensor(counts, at::kLong).sum().item<int64_t>();
  Layer layer(total, reach);
  if (capacity) layer.kept = at::rand({total, kExperts}).gt(0.5);
  const std::vector<at::Tensor> want = run(layer, {0, total}, {0, kExperts}, {0, kWidth}, nullptr);
  run_ranks(static_cast<int>(counts.size()), [&](TestRank& rank) {
    const ExpertGroup ranks{rank.world_group(), tensor_ranks};
    const Range local = ranks.local(kExperts);
    const int64_t part = kWidth / tensor_ranks, column = rank.rank() % tensor_ranks * part;
    Range tokens;
    for (int r = 0; r < rank.rank(); ++r) tokens.begin += counts[static_cast<size_t>(r)];
    tokens.end = tokens.begin + counts[static_cast<size_t>(rank.rank())];
    Dispatcher dispatcher(ranks);
    const std::vector<at::Tensor> got = run(layer, tokens, local, {column, column + part}, &dispatcher);
    for (size_t i = 0; i < 3; ++i) CHECK(distance(got[i], want[i].slice(0, tokens.begin, tokens.end)) <= 2e-5);
    for (size_t i = 3; i < got.size(); ++i) {
      const at::Tensor whole = want[i + static_cast<size_t>(3 * local.begin)];
      CHECK(distance(got[i], whole.slice(i % 3 == 2, column, column + part)) <= 2e-5);
    }
  });
}

template <typename Dispatcher>
void check_all() {
  check<Dispatcher>({7}, 1, kExperts);
  check<Dispatcher>({7, 5}, 1, kExperts);
  check<Dispatcher>({0, 5}, 1, kExperts);        // a rank without tokens
  check<Dispatcher>({7, 5}, 1, 2);               // a rank whose experts nobody wants
  check<Dispatcher>({3, 5, 1, 4}, 1, kExperts);  // one expert a rank
  check<Dispatcher>({3, 5}, 2, kExperts);        // a part of every expert a rank
  check<Dispatcher>({3, 5, 1, 4}, 2, kExperts);
  check<Dispatcher>({3, 0, 1, 4}, 4, 2);
  check<Dispatcher>({6, 5, 9, 4}, 2, kExperts, /*capacity=*/true);
}

}  // namespace

TEST_CASE("experts reached by all-to-all equal local ones") { check_all<AllToAllDispatcher>(); }
TEST_CASE("experts reached by all-gather equal local ones") { check_all<AllGatherDispatcher>(); }

TEST_CASE("experts cut over ranks with equal tokens equal whole ones") {
  for (int world : {2, 4}) {
    at::manual_seed(12);
    const Layer layer(7, world == 4 ? 2 : kExperts);
    const std::vector<at::Tensor> want = run(layer, {0, 7}, {0, kExperts}, {0, kWidth}, nullptr);
    run_ranks(world, [&](TestRank& rank) {
      const int64_t part = kWidth / world, column = rank.rank() * part;
      EqualTokensDispatcher dispatcher(rank.world_group());
      const std::vector<at::Tensor> got = run(layer, {0, 7}, {0, kExperts}, {column, column + part}, &dispatcher);
      for (size_t i = 0; i < got.size(); ++i) {
        const bool cut = i >= 3;
        CHECK(distance(got[i], cut ? want[i].slice(i % 3 == 2, column, column + part) : want[i]) <= 2e-5);
      }
    });
  }
}

namespace {

// A group whose all-to-alls are noted when they start and when they are waited for.
struct NotedWork : c10d::Work {
  NotedWork(c10::intrusive_ptr<c10d::Work> real, std::string& notes) : real(std::move(real)), notes(notes) {}
  bool wait(std::chrono::milliseconds timeout) override {
    notes += ")";
    return real->wait(timeout);
  }
  c10::intrusive_ptr<c10d::Work> real;
  std::string& notes;
};
struct NotedGroup : c10d::ProcessGroup {
  NotedGroup(c10d::ProcessGroup* real, std::string& notes)
      : c10d::ProcessGroup(real->getRank(), real->getSize()), real(real), notes(notes) {}
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& receive,
                                               std::vector<int64_t>& send, const c10d::AllToAllOptions& o) override {
    notes += "(";
    return c10::make_intrusive<NotedWork>(real->alltoall_base(out, in, receive, send, o), notes);
  }
  c10d::ProcessGroup* real;
  std::string& notes;
};

// Notes when it runs, forward and backward.
struct Noted : torch::autograd::Function<Noted> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, int64_t notes) {
    ctx->saved_data["notes"] = notes;
    *reinterpret_cast<std::string*>(notes) += "f";
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    *reinterpret_cast<std::string*>(ctx->saved_data["notes"].toInt()) += "b";
    return {grads[0] * 2, at::Tensor()};
  }
};

}  // namespace

TEST_CASE("shared experts are computed while tokens travel, forward and backward") {
  at::manual_seed(3);
  const Layer layer(8, kExperts);
  run_ranks(2, [&](TestRank& rank) {
    std::string notes;
    const Group real = rank.world_group();
    const auto noted = c10::make_intrusive<NotedGroup>(real.native(), notes);
    const ExpertGroup ranks{Group(noted.get()), 1};
    ExpertWeights weights;
    weights.local = ranks.local(kExperts);
    for (int64_t e = weights.local.begin; e < weights.local.end; ++e) {
      const auto i = static_cast<size_t>(e);
      weights.gate.push_back(layer.gate[i]), weights.up.push_back(layer.up[i]), weights.down.push_back(layer.down[i]);
    }
    const auto mine = [&](const at::Tensor& x) { return x.slice(0, 4 * rank.rank(), 4 * rank.rank() + 4); };
    const auto run = [&](bool overlaps) {
      const at::Tensor x = leaf(mine(layer.tokens));
      at::Tensor shared;
      const auto meanwhile = [&] { shared = Noted::apply(x, reinterpret_cast<int64_t>(&notes)); };
      AllToAllDispatcher dispatcher(ranks);
      const at::Tensor out =
          dispatcher.run(x, {mine(layer.probs), mine(layer.experts), {}}, kExperts, weights,
                         overlaps ? ExpertDispatcher::Meanwhile(meanwhile) : ExpertDispatcher::Meanwhile());
      if (!overlaps) meanwhile();
      (out + shared).backward(mine(layer.grad));
      return std::vector<at::Tensor>{(out + shared).detach(), x.grad()};
    };
    // Counts; tokens and probabilities; results. Backward: gradients of results; of tokens and probabilities.
    const std::vector<at::Tensor> apart = run(false);
    CHECK(notes == "()(())()fb()(())");
    notes.clear();
    const std::vector<at::Tensor> together = run(true);
    CHECK(notes == "()((f))()()((b))");
    for (size_t i = 0; i < together.size(); ++i) CHECK(together[i].equal(apart[i]));
  });
}

TEST_CASE("experts that do not divide over ranks are refused") {
  run_ranks(2, [](TestRank& rank) {
    CHECK_THROWS_WITH_AS((ExpertGroup{rank.world_group(), 1}.local(5)),
                         "5 experts do not divide over 2 expert-parallel ranks: take a divisor of 5", Error);
  });
}

}  // namespace hexad::modeling
