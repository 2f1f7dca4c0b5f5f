// Router replay beside plain autograd: training goes to the experts that the log-prob pass chose, though the weights have
// moved and the micro-batches and their ranks are others.
#pragma once
#include "tests/plugins/backend/expert_reference.hpp"

namespace backend_test {

struct ReplayErrors {
  double grad = 0;         // after the weights have moved
  double without = 0;      // of the reference that does not replay: far away
  std::string unrecorded;  // what training on other sequences says
};

inline ReplayErrors replay_errors(const nlohmann::json& model, const Packing& recorded, const Packing& trained,
                                  const std::function<json(const std::filesystem::path&)>& policy_of) {
  const TemporaryDir folder;
  ExpertReference reference(folder.path(), write_model(folder.path(), model));
  json policy = policy_of(folder.path());
  policy["router_replay"] = {{"enabled", true}};
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
  CHECK(errors.grad <= 1e-5);
  CHECK(errors.without > 1e-3);
  CHECK(errors.unrecorded.starts_with("router replay: "));
  CHECK(errors.unrecorded.ends_with(
      " was not in the last log-prob pass of the current weights: run that pass over what is trained on, or set "
      "policy.router_replay.enabled to false"));
}

}  // namespace backend_test
