// Router replay beside plain autograd: training goes to the experts that the log-prob pass chose, though the weights
// have moved and the micro-batches and their ranks are others; or, as the log-prob pass does, to those that came with
// the batch.
#pragma once
#include "tests/plugins/backend/expert_reference.hpp"

namespace backend_test {

struct ReplayErrors {
  double grad = 0;         // after the weights have moved
  double bound = 0;        // of that
  double without = 0;      // of the reference that does not replay: far away
  std::string unrecorded;  // what training on other sequences says
};

inline ReplayErrors replay_errors(const nlohmann::json& model, const Packing& recorded, const Packing& trained,
                                  const std::function<json(const std::filesystem::path&)>& policy_of) {
  const TemporaryDir folder;
  ExpertReference reference(folder.path(), write_model(folder.path(), model));
  json policy = policy_of(folder.path());
  policy["router_replay"] = {{"enabled", true}, {"source", "logprobs"}};
  Instance backend(policy);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  std::vector<Sequence> data = make_sequences(11, 0);
  const double normalizer = static_cast<double>(total_tokens(data));
  auto first = backend.batches(data, recorded);
  backend.logprobs(first, HEXAD_WEIGHTS_CURRENT, kTemperature);
  reference.routed_by = reference.weights;
  std::rotate(data.begin(), data.begin() + 1, data.end());
  const auto packs = packs_of(data, trained, static_cast<size_t>(backend.info().dp_size));
  const auto train = [&] {
    auto batches = backend.batches(data, trained);
    backend.train(batches, normalizer, kTemperature);
    return backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  };
  train();
  backend.step(0.05, 0, 0);
  reference.weights = backend.weights(HEXAD_WEIGHTS_CURRENT);
  backend.keep(HEXAD_WEIGHTS_REFERENCE);
  backend.logprobs(first, HEXAD_WEIGHTS_REFERENCE, kTemperature);  // other weights: nothing is recorded
  const Weights got = train();
  reference.train_packs(packs, normalizer, kTemperature);
  ReplayErrors errors;
  errors.grad = relative_error(got, reference.grads);
  Errors plain;
  add_plain_errors(reference, packs, normalizer, plain);
  errors.bound = bound_of(plain.grad);
  reference.grads.clear();
  reference.routed_by.reset();
  reference.train_packs(packs, normalizer, kTemperature);
  errors.without = relative_error(got, reference.grads);
  auto others = backend.batches(make_sequences(11, 5), trained);
  double ignored = 0;
  CHECK(backend.try_train(others, normalizer, kTemperature, 1, ignored) == HEXAD_FAILED_PRECONDITION);
  errors.unrecorded = backend.error();
  return errors;
}

inline void check_replay(const ReplayErrors& errors) {
  CHECK(errors.grad <= errors.bound);
  CHECK(errors.without > 1e-3);
  CHECK(errors.unrecorded.starts_with("router replay: "));
  CHECK(errors.unrecorded.ends_with(
      " was not in the last log-prob pass of the current weights: run that pass over what is trained on, or set "
      "policy.router_replay.enabled to false"));
}

// Experts for a rollout that never was, functions of token, position and layer: int16 [tokens, layers with experts, k],
// and -1 at the last token of each sequence.
inline at::Tensor invented_routes(const hexad::modeling::ModelConfig& config, const Pack& pack) {
  const int64_t experts = config.moe->num_experts, topk = config.moe->routing.topk;
  std::vector<int64_t> values;
  int64_t layers = 0, tokens = 0;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) layers += config.has_experts(layer);
  for (const Sequence& sequence : pack) {
    for (size_t t = 0; t < sequence.ids.size(); ++t, ++tokens)
      for (int64_t layer = 0; layer < layers; ++layer)
        for (int64_t k = 0; k < topk; ++k) {
          const int64_t first = sequence.ids[t] * 7 + static_cast<int64_t>(t) * 3 + layer * 5;
          values.push_back(t + 1 == sequence.ids.size() ? -1 : (first + k) % experts);
        }
  }
  return at::tensor(values, at::kLong).to(at::kShort).view({tokens, layers, topk});
}

struct GivenErrors {
  double logprobs = 0, grad = 0, other_logprobs = 0;  // other: of passes that routers choose for
  Errors bound;
  double without = 0;  // of the reference's log-probs where routers choose: far away
  std::map<std::string, std::string> refused;
};

inline GivenErrors given_errors(const nlohmann::json& model, const Packing& packing,
                                const std::function<json(const std::filesystem::path&)>& policy_of) {
  const TemporaryDir folder;
  ExpertReference reference(folder.path(), write_model(folder.path(), model));
  json policy = policy_of(folder.path());
  policy["router_replay"] = {{"enabled", true}};  // the source is the rollout
  Instance backend(policy);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  REQUIRE(backend.info().num_inputs == 2);
  CHECK(std::string(backend.info().inputs[1]) == "routed_experts");
  const auto& config = reference.config;
  const std::vector<Sequence> data = make_sequences(11, 0);
  const double normalizer = static_cast<double>(total_tokens(data));
  const auto packs = packs_of(data, packing, static_cast<size_t>(backend.info().dp_size));
  const std::vector<Pack>& mine = packs[static_cast<size_t>(backend.info().dp_rank)];
  auto batches = backend.batches(data, packing);
  const auto give = [&](const auto& change) {
    for (size_t b = 0; b < batches.size(); ++b)
      batches[b].give_experts(b < mine.size() ? change(invented_routes(config, mine[b])) : at::Tensor());
  };
  std::map<int64_t, int64_t> place;  // of a layer with experts
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    if (config.has_experts(layer)) place.emplace(layer, static_cast<int64_t>(place.size()));
  reference.given = [&](const Pack& pack, int64_t layer) {
    return invented_routes(config, pack).select(1, place.at(layer)).to(at::kLong);
  };
  GivenErrors errors;
  const auto largest = [&](const std::vector<at::Tensor>& got) {
    double error = 0;
    for (size_t b = 0; b < mine.size() && backend.info().counts_loss; ++b) {
      ExpertReference::Traces traces;
      const at::NoGradGuard no_grad;
      const auto want = reference.pack_outputs(reference.weights, mine[b], kTemperature, traces).first;
      error = std::max(error, (got[b] - want).abs().max().item<double>());
    }
    return error;
  };
  give([](const at::Tensor& experts) { return experts; });
  errors.logprobs = largest(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kTemperature));
  backend.train(batches, normalizer, kTemperature);
  reference.train_packs(packs, normalizer, kTemperature);
  errors.grad = relative_error(backend.weights(HEXAD_WEIGHTS_GRADIENTS), reference.grads);
  Errors plain;
  add_plain_errors(reference, packs, normalizer, plain);
  errors.bound = {.grad = bound_of(plain.grad), .logprob = bound_of(plain.logprob)};
  backend.step(0, 0, 0, HEXAD_STEP_DISCARD);
  // Without routes a log-prob pass goes its own way; so does that of other weights.
  reference.given = nullptr;
  errors.without = sum_over_ranks(largest(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kTemperature)));
  backend.keep(HEXAD_WEIGHTS_REFERENCE);
  errors.other_logprobs = largest(backend.logprobs(batches, HEXAD_WEIGHTS_REFERENCE, kTemperature));
  give([](const at::Tensor&) { return at::Tensor(); });
  errors.other_logprobs =
      std::max(errors.other_logprobs, largest(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kTemperature)));
  const auto refuse = [&](const char* what, const auto& change) {
    give(change);
    double ignored = 0;
    CHECK(backend.try_train(batches, normalizer, kTemperature, 1, ignored) == HEXAD_FAILED_PRECONDITION);
    errors.refused[what] = backend.error();
  };
  refuse("absent", [](const at::Tensor&) { return at::Tensor(); });
  refuse("narrow", [](const at::Tensor& experts) { return experts.slice(2, 1).contiguous(); });
  refuse("large", [&](const at::Tensor& experts) {
    at::Tensor wrong = experts.clone();
    wrong[1][0][0] = static_cast<int16_t>(config.moe->num_experts);
    return wrong;
  });
  refuse("twice", [](const at::Tensor& experts) {
    at::Tensor wrong = experts.clone();
    wrong[1][0][0] = wrong[1][0][1];
    return wrong;
  });
  return errors;
}

inline void check_given(const GivenErrors& errors) {
  CHECK(errors.logprobs <= errors.bound.logprob);
  CHECK(errors.other_logprobs <= errors.bound.logprob);
  CHECK(errors.grad <= errors.bound.grad);
  CHECK(errors.without > 1e-2);
  CHECK(
      errors.refused.at("absent").starts_with("router replay: micro-batch 0 has no routed_experts: draw it with a "
                                              "generator that gives them, or set policy.router_replay.source to "
                                              "logprobs"));
  CHECK(errors.refused.at("narrow").starts_with("router replay: routed_experts of micro-batch 0: got Short ["));
  CHECK(errors.refused.at("narrow").ends_with("] (tokens, layers with experts, experts a token)"));
  for (const char* what : {"large", "twice"})
    CHECK(errors.refused.at(what).starts_with("router replay: routed_experts of micro-batch 0: token 1: wanted "));
}

}  // namespace backend_test
