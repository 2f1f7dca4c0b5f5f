// Plain autograd for what training does to experts: balancing losses, capacity and the expert bias, by their formulas,
// over the micro-batches of all data-parallel ranks.
#pragma once
#include <optional>

#include "modeling/family/transformer.hpp"
#include "tests/plugins/backend/comparison.hpp"

namespace backend_test {

struct Balancing {
  double aux = 0, sequence = 0, global = 0, z = 0;  // coefficients
  bool per_token = true;                            // means over tokens; otherwise over micro-batches
  double capacity = 0;                              // factor; 0: dropless
  bool by_position = false;                         // the first tokens keep their places; otherwise the most probable
  double bias_rate = 0;
};

// Sees what goes through the experts of one layer; drops what has no place.
struct ExpertTrace : hexad::modeling::ExpertDispatcher {
  const Balancing* balancing = nullptr;
  at::Tensor tokens, experts, kept;

  at::Tensor run(const at::Tensor& x, const hexad::modeling::Routing& routing, int64_t num_experts,
                 const hexad::modeling::ExpertWeights& weights, const Meanwhile&) override {
    hexad::modeling::Routing mine = routing;
    tokens = x, experts = routing.experts;
    kept = at::zeros({x.size(0), num_experts}, x.options().dtype(at::kBool)).scatter(1, experts, true);
    if (balancing->capacity > 0) mine.kept = drop(routing, num_experts);
    return run_local_experts(x, mine, num_experts, weights);
  }
  at::Tensor drop(const hexad::modeling::Routing& routing, int64_t num_experts) {
    const double share = static_cast<double>(experts.numel()) / static_cast<double>(num_experts);
    const auto places = static_cast<size_t>(std::ceil(share * balancing->capacity));
    for (int64_t expert = 0; expert < num_experts; ++expert) {
      std::vector<std::pair<float, int64_t>> wanted;  // by falling probability, then by position
      for (int64_t t = 0; t < experts.size(0); ++t)
        for (int64_t k = 0; k < experts.size(1); ++k)
          if (experts[t][k].item<int64_t>() == expert)
            wanted.emplace_back(balancing->by_position ? 0 : -routing.probs[t][k].item<float>(), t);
      std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t i = places; i < wanted.size(); ++i) kept[wanted[i].second][expert] = false;
    }
    return kept;
  }
};

struct ExpertReference : Reference {
  using Reference::Reference;
  using Traces = std::map<int64_t, ExpertTrace>;

  Balancing balancing;
  std::optional<Weights> routed_by;  // tokens go to the experts that these weights choose
  // Or to these: int64 [tokens, k] of a layer.
  std::function<at::Tensor(const Pack&, int64_t layer)> given;
  std::map<std::string, double>
      balances;  // losses without coefficients, means over layers and over tokens or micro-batches
  std::map<int64_t, at::Tensor> visits;  // of each layer and expert, of the last global batch

  // Log-probs and entropy of all tokens of a pack, 0 at the first of each sequence.
  std::pair<at::Tensor, at::Tensor> pack_outputs(const Weights& with, const Pack& pack, double temperature,
                                                 Traces& traces, const Traces* choice = nullptr) const {
    const auto runs = [&](int64_t layer) {
      traces[layer].balancing = &balancing;
      hexad::modeling::MoeRun run;
      run.dispatcher = &traces[layer];
      if (choice) run.route.selected = choice->at(layer).experts;
      if (given) run.route.selected = given(pack, layer).to(device);
      return run;
    };
    return outputs(with, pack, temperature, runs);
  }

  struct Scores {
    at::Tensor probs, map, logits;
  };
  Scores scores_of(const Weights& with, int64_t layer, const ExpertTrace& trace) const {
    const auto& moe = *config.moe;
    const std::string gate = "model.layers." + std::to_string(layer) + "." + moe.family->block + "gate.weight";
    const at::Tensor logits = at::mm(trace.tokens, with.at(gate).t());
    const bool softmax = moe.routing.score == hexad::modeling::ScoreFunction::softmax;
    const at::Tensor raw = softmax ? logits.exp() : logits.sigmoid(), probs = raw / raw.sum(-1, true);
    const at::Tensor best = std::get<1>(probs.detach().topk(moe.routing.topk, 1));
    return {probs, at::zeros_like(probs.detach()).scatter(1, best, 1.0), logits};
  }
  // E / (k T^2) sum_e (sum_t p_te) n_e
  at::Tensor balance(const at::Tensor& probs, const at::Tensor& counts, double tokens) const {
    const auto& moe = *config.moe;
    return (probs * counts).sum() *
           (static_cast<double>(moe.num_experts) / (static_cast<double>(moe.routing.topk) * tokens * tokens));
  }
  // The losses of one layer over a pack, as summands of the objective; without their coefficients in `balances`.
  at::Tensor pack_losses(const Scores& s, const Pack& pack, double weight, double layers) {
    const auto tokens = static_cast<double>(s.probs.size(0));
    const at::Tensor aux = balance(s.probs.sum(0), s.map.sum(0), tokens),
                     z = at::logsumexp(s.logits, {-1}).square().mean();
    at::Tensor by_sequence = at::zeros({});
    int64_t begin = 0;
    for (const Sequence& sequence : pack) {
      const int64_t end = begin + static_cast<int64_t>(sequence.ids.size());
      const auto length = static_cast<double>(end - begin);
      by_sequence =
          by_sequence +
          length / tokens * balance(s.probs.slice(0, begin, end).sum(0), s.map.slice(0, begin, end).sum(0), length);
      begin = end;
    }
    balances["moe/load_balancing_loss"] += aux.item<double>() * weight / layers;
    balances["moe/seq_load_balancing_loss"] += by_sequence.item<double>() * weight / layers;
    balances["moe/z_loss"] += z.item<double>() * weight / layers;
    return weight * (balancing.aux * aux + balancing.sequence * by_sequence + balancing.z * z);
  }

  // packs[r]: the micro-batches of data-parallel rank r. Adds to grads; returns the loss without the balancing ones.
  double train_packs(const std::vector<std::vector<Pack>>& packs, double normalizer, double temperature) {
    const at::AutoGradMode mode(true);
    Weights leaves;
    std::vector<at::Tensor> inputs;
    for (const auto& [name, tensor] : weights) {
      leaves[name] = tensor.detach().requires_grad_(!frozen.count(name));
      if (!frozen.count(name)) inputs.push_back(leaves[name]);
    }
    size_t most = 0, count = 0;
    double all_tokens = 0;
    for (const auto& of_rank : packs) {
      most = std::max(most, of_rank.size()), count += of_rank.size();
      for (const Pack& pack : of_rank) all_tokens += static_cast<double>(total_tokens(pack));
    }
    const auto weight_of = [&](double tokens) {
      return balancing.per_token ? tokens / all_tokens : 1 / static_cast<double>(count);
    };
    const auto layers = static_cast<double>(std::count(config.moe->layers.begin(), config.moe->layers.end(), true));
    losses.clear(), balances.clear(), visits.clear();
    std::map<int64_t, at::Tensor> earlier;  // counts of the micro-batches so far
    at::Tensor objective = at::zeros({});
    for (size_t index = 0; index < most; ++index) {
      std::map<int64_t, std::pair<at::Tensor, at::Tensor>> sums;  // probabilities and counts over all ranks
      double tokens = 0;
      for (const auto& of_rank : packs) {
        if (index >= of_rank.size()) continue;
        const Pack& pack = of_rank[index];
        Traces traces, choice;
        if (routed_by) {
          const at::NoGradGuard no_grad;
          pack_outputs(*routed_by, pack, temperature, choice);
        }
        const auto [logprobs, entropy] = pack_outputs(leaves, pack, temperature, traces, routed_by ? &choice : nullptr);
        std::vector<at::Tensor> factors;
        for (const Sequence& sequence : pack) factors.push_back(at::tensor(sequence.weight));
        const Loss loss = loss_of(logprobs.detach().cpu(), entropy.detach().cpu(), at::cat(factors), normalizer);
        losses.push_back(loss.value);
        objective = objective + (logprobs * loss.grad_logprobs.to(device)).sum() +
                    (entropy * loss.grad_entropy.to(device)).sum();
        const auto own = static_cast<double>(total_tokens(pack));
        tokens += own;
        for (const auto& [layer, trace] : traces) {
          const Scores scores = scores_of(leaves, layer, trace);
          objective = objective + pack_losses(scores, pack, weight_of(own), layers);
          auto& [probs, counts] = sums[layer];
          probs = probs.defined() ? probs + scores.probs.sum(0) : scores.probs.sum(0);
          counts = counts.defined() ? counts + scores.map.sum(0) : scores.map.sum(0);
          at::Tensor& seen = visits[layer];
          const at::Tensor now = trace.kept.sum(0).to(at::kFloat);
          seen = seen.defined() ? seen + now : now;
        }
      }
      for (auto& [layer, sum] : sums) {
        at::Tensor& so_far = earlier[layer];
        so_far = so_far.defined() ? so_far + sum.second : sum.second;
        const at::Tensor loss = balance(sum.first, so_far / static_cast<double>(index + 1), tokens);
        const double share = balancing.per_token ? tokens / all_tokens : 1 / static_cast<double>(most);
        balances["moe/global_load_balancing_loss"] += loss.item<double>() * share / layers;
        objective = objective + weight_of(tokens) * balancing.global * loss;
      }
    }
    const auto found =
        torch::autograd::grad({objective}, inputs, {at::ones_like(objective)}, false, false, /*allow_unused=*/true);
    add_gradients(found);
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

  void update_biases() {
    const auto& family = *config.moe->family;
    if (!family.expert_bias || balancing.bias_rate == 0) return;
    for (const auto& [layer, counts] : visits) {
      at::Tensor& bias = weights.at("model.layers." + std::to_string(layer) + "." + family.block + family.expert_bias);
      bias = bias + (counts.mean() - counts).sign() * balancing.bias_rate;
    }
  }
};

// Of plain autograd where the backend computes, beside the reference after its train_packs; nothing where that is on
// one device.
inline void add_plain_errors(const ExpertReference& reference, const std::vector<std::vector<Pack>>& packs,
                             double normalizer, Errors& errors) {
  if (!test_device::is_gpu()) return;
  ExpertReference plain = plain_like(reference);
  if (plain.routed_by) plain.routed_by = moved(*plain.routed_by, plain.device, at::kFloat);
  plain.train_packs(packs, normalizer, kTemperature);
  add_errors_of_train(plain, reference, errors);
  check_fp32(errors);
  const at::NoGradGuard no_grad;
  for (const auto& of_rank : packs)
    for (const Pack& pack : of_rank) {
      ExpertReference::Traces traces;
      const at::Tensor got = plain.pack_outputs(plain.weights, pack, kTemperature, traces).first.cpu(),
                       want = reference.pack_outputs(reference.weights, pack, kTemperature, traces).first;
      errors.logprob = worse(errors.logprob, (got - want).abs().max().item<double>());
    }
}

struct ExpertErrors : BoundedErrors {
  double balances = 0;  // of the reported balancing losses
};

// Two steps of the backend beside two of the reference. `frozen`: ends of names of weights that are not trained.
inline ExpertErrors expert_steps(const nlohmann::json& model, const Packing& packing, const Balancing& balancing,
                                 const std::function<json(const std::filesystem::path&)>& policy_of,
                                 const std::string& frozen = "") {
  const TemporaryDir folder;
  ExpertReference reference(folder.path(), write_model(folder.path(), model));
  reference.balancing = balancing;
  for (const auto& [name, weight] : reference.weights)
    if (!frozen.empty() && name.ends_with(frozen)) reference.frozen.insert(name);
  const json policy = policy_of(folder.path());
  reference.decays_matrices_only = policy.contains("megatron_cfg");
  Instance backend(policy);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  ExpertErrors errors;
  for (int step = 0; step < 2; ++step) {
    const std::vector<Sequence> data = make_sequences(11, step);
    const auto packs = packs_of(data, packing, static_cast<size_t>(backend.info().dp_size));
    const double normalizer = static_cast<double>(total_tokens(data));
    const double want = reference.train_packs(packs, normalizer, kTemperature);
    add_plain_errors(reference, packs, normalizer, errors.plain);
    reported().clear();
    auto batches = backend.batches(data, packing);
    const double got = sum_over_ranks(backend.train(batches, normalizer, kTemperature));
    errors.loss = std::max(errors.loss, std::abs(got - want) / magnitude(reference.losses));
    for (const auto& [name, value] : reported())
      errors.balances = std::max(errors.balances, std::abs(value / reference.balances.at(name) - 1));
    const size_t wanted = (balancing.aux > 0) + (balancing.sequence > 0) + (balancing.global > 0) + (balancing.z > 0);
    if (reported().size() != wanted) errors.balances = INFINITY;
    const Weights grads = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
    errors.grad = std::max(errors.grad, relative_error(grads, reference.grads));
    const double norm = reference.grad_norm();
    errors.norm = std::max(errors.norm, std::abs(backend.step(kLr, kDecay, kMaxNorm).grad_norm - norm) / norm);
    reference.grads = grads;
    reference.step(kLr, kDecay, kMaxNorm);
    reference.update_biases();
    Weights weights = backend.weights(HEXAD_WEIGHTS_CURRENT);
    errors.weight = std::max(errors.weight, relative_error(weights, reference.weights));
    reference.weights = std::move(weights);
  }
  add_bounds(errors, false);
  return errors;
}

}  // namespace backend_test
