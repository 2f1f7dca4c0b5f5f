// Near ties: where the order of sums decides what a pass in fp32 does. A pass is continuous but for two things: it
// casts keys and values to e4m3, and its routers choose experts. Where a number lies next to the middle between two
// neighbours of e4m3, or two experts lie next to each other, two right passes may decide differently, and differ from
// there on. Everywhere else they differ by rounding alone.
#pragma once
#include <memory>

#include "tests/plugins/native/support/reference.hpp"

namespace native_test {

// A right pass in fp32 lies at most so many times as far from the reference as the reference in another order of sums.
// Rounding errors of a sum add up at random, as their squares do (Higham and Mary, SIAM J. Sci. Comput. 41, 2019), and
// each goes with the partial sum that it is made in. Where a pass has one partial sum, the reference's kernels may have
// 16, the lanes of a vector, and these are sqrt(16) times smaller.
constexpr double kSumOrders = 4;

// What a pass decides by: numbers [T, n] that it casts to e4m3, or of which it chooses the `topk` largest of a row.
struct Decision {
  at::Tensor numbers;
  int64_t topk = 0;  // 0: casts

  // errors [T, 1] -> bool [T]: may numbers that are off by so much decide otherwise?
  at::Tensor may_turn(const at::Tensor& errors) const {
    if (topk == 0) return through_e4m3(numbers - errors).ne(through_e4m3(numbers + errors)).any(1);
    const at::Tensor best = std::get<0>(numbers.topk(topk + 1, 1));
    return best.select(1, topk - 1).sub(best.select(1, topk)).le(2 * errors.squeeze(1));
  }
};

// Runs all experts of a layer, and notes the logits that they were chosen by.
class NotedExperts : public hexad::modeling::ExpertDispatcher {
 public:
  NotedExperts(at::Tensor router, std::vector<Decision>& noted) : router_(std::move(router)), noted_(noted) {}
  at::Tensor run(const at::Tensor& tokens, const hexad::modeling::Routing& routing, int64_t num_experts,
                 const hexad::modeling::ExpertWeights& weights, const Meanwhile&) override {
    noted_.push_back({hexad::modeling::router_linear(tokens, router_, at::kFloat), routing.experts.size(1)});
    return hexad::modeling::run_local_experts(tokens, routing, num_experts, weights);
  }

 private:
  at::Tensor router_;
  std::vector<Decision>& noted_;
};

struct DecidedPass {
  std::vector<float> logprobs;      // as of full_forward
  std::vector<Decision> decisions;  // in the order in which they are made
};

// The full forward pass with keys and values by way of e4m3.
inline DecidedPass decided_pass(const hexad::modeling::ModelConfig& config, const Weights& weights,
                                const std::vector<int32_t>& tokens) {
  DecidedPass pass;
  const OfCache cast = [&](const at::Tensor& x) {
    pass.decisions.push_back({x.flatten(1)});
    return through_e4m3(x);
  };
  const auto lookup = [&](const std::string& name) { return weights.at(name); };
  std::vector<std::unique_ptr<NotedExperts>> layers;
  const hexad::modeling::MoeRuns experts = [&](int64_t layer) {
    const at::Tensor router = hexad::modeling::layer_weights(config, layer, lookup).moe.router;
    layers.push_back(std::make_unique<NotedExperts>(router, pass.decisions));
    return hexad::modeling::MoeRun{.dispatcher = layers.back().get()};
  };
  pass.logprobs = full_forward(config, weights, tokens, {}, cast, experts);
  return pass;
}

// The same model with its hidden units in reverse: the same function, but it sums over them in the reverse order.
inline Weights with_units_reversed(const Weights& weights) {
  Weights result;
  for (const auto& [name, weight] : weights) {
    const auto has = [&name = name](const char* part) { return name.find(part) != std::string::npos; };
    const bool makes_units =
        has("o_proj.") || has("down_proj.") || has(".w2.") || has("layernorm.") || has("model.norm.");
    const bool reads_units = weight.dim() == 2 && !makes_units;
    result[name] = makes_units ? weight.flip(0) : reads_units ? weight.flip(1) : weight;
  }
  return result;
}

// For how many of a text's first tokens every pass decides as `pass` does whose numbers lie at most `factor` times as
// far from its as those of `other`, which sums in another order. A token's distance is its farthest number's, and at
// least the mean token's: its errors may be small by chance. The first `known` tokens are taken to be among them.
inline int64_t tokens_decided_alike(const DecidedPass& pass, const DecidedPass& other, double factor = kSumOrders,
                                    int64_t known = 0) {
  int64_t alike = pass.decisions.at(0).numbers.size(0);
  for (size_t i = 0; i < pass.decisions.size() && alike > known; ++i) {
    // Behind a near tie numbers may differ by more than rounding.
    const auto sure = [alike](const at::Tensor& x) { return x.slice(0, 0, alike); };
    const Decision decision{sure(pass.decisions[i].numbers), pass.decisions[i].topk};
    const at::Tensor farthest = decision.numbers.sub(sure(other.decisions.at(i).numbers)).abs().amax(1, true);
    const at::Tensor errors = factor * at::maximum(farthest, farthest.mean());
    const at::Tensor ties = decision.may_turn(errors).slice(0, known).nonzero();
    if (ties.size(0) > 0) alike = known + ties[0].item<int64_t>();
  }
  return alike;
}

// Replaces tokens behind the first `known` until none is a near tie. It keeps twice the distance that
// tokens_decided_alike asks for: a text that begins with these tokens has other rounding errors.
inline void avoid_near_ties(const hexad::modeling::ModelConfig& config, const Weights& weights,
                            std::vector<int32_t>& tokens, int64_t known = 0) {
  const Weights reversed = with_units_reversed(weights);
  for (int tries = 0; tries < 1000; ++tries) {
    const DecidedPass pass = decided_pass(config, weights, tokens), other = decided_pass(config, reversed, tokens);
    const auto alike = size_t(tokens_decided_alike(pass, other, 2 * kSumOrders, known));
    if (alike == tokens.size()) return;
    tokens[alike] = 1 + tokens[alike] % int32_t(config.vocab_size - 1);
  }
}

}  // namespace native_test
