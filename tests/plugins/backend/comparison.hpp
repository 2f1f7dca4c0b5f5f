// A backend in any layout beside plain autograd on one rank.
#pragma once
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/temporary_dir.hpp"

namespace backend_test {

constexpr double kTemperature = 0.8, kLr = 3e-3, kDecay = 0.1, kMaxNorm = 0.4;

struct Errors {
  double loss = 0, grad = 0, weight = 0, norm = 0, logprob = 0;
};

inline double sum_over_ranks(double value) {
  hexad_comm* world = nullptr;
  runtime_test::check_ok(runtime_test::runtime().comm_axis("world", &world));
  runtime_test::Tensor<double> sum({value});
  if (world) runtime_test::check_ok(runtime_test::runtime().all_reduce(world, &sum.dl, HEXAD_OP_SUM));
  return sum.data[0];
}

// The largest difference of a log-prob of this rank's batches from the reference's; 0 where another rank has them.
inline double logprob_error(Instance& backend, const Reference& reference, const std::vector<Sequence>& data,
                            const Packing& packing) {
  auto batches = backend.batches(data, packing);
  const std::vector<at::Tensor> got = backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kTemperature);
  if (!backend.info().counts_loss) return 0;
  const at::NoGradGuard no_grad;
  double worst = 0;
  for (size_t b = 0; b < got.size(); ++b) {
    const hexad_batch& batch = batches[b].batch;
    for (int64_t i = 0; i < batch.num_sequences && !batch.is_dummy; ++i) {
      const int64_t begin = batch.cu_seqlens[i], end = batch.cu_seqlens[i + 1];
      const Sequence sequence{{batches[b].ids.begin() + begin, batches[b].ids.begin() + end}, {}};
      const at::Tensor want = reference.outputs(reference.weights, sequence, kTemperature).first;
      worst = std::max(worst, (got[b].slice(0, begin, end) - want).abs().max().item<double>());
    }
  }
  return worst;
}

// Three steps of the backend beside three of the reference; the largest differences. Adam's division magnifies rounding
// where gradients vanish, so each step starts from the same weights: those errors would otherwise be counted again.
// `policy_of` makes the configuration of a model's folder.
inline Errors three_steps(const nlohmann::json& model, const Packing& packing,
                          const std::function<json(const std::filesystem::path&)>& policy_of) {
  const TemporaryDir folder;
  const std::filesystem::path& dir = folder.path();
  Reference reference(dir, write_model(dir, model));
  Instance backend(policy_of(dir));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  Errors errors;
  for (int step = 0; step < 3; ++step) {
    const std::vector<Sequence> data = make_sequences(11, step);
    const double normalizer = static_cast<double>(total_tokens(data));
    errors.logprob = std::max(errors.logprob, logprob_error(backend, reference, data, packing));
    const double want = reference.train(data, normalizer, kTemperature);
    auto batches = backend.batches(data, packing);
    const double got = sum_over_ranks(backend.train(batches, normalizer, kTemperature));
    errors.loss = std::max(errors.loss, std::abs(got - want) / std::abs(want));
    const Weights grads = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
    errors.grad = std::max(errors.grad, relative_error(grads, reference.grads));
    const double norm = reference.grad_norm();
    errors.norm = std::max(errors.norm, std::abs(backend.step(kLr, kDecay, kMaxNorm).grad_norm - norm) / norm);
    reference.step(kLr, kDecay, kMaxNorm);
    Weights weights = backend.weights(HEXAD_WEIGHTS_CURRENT);
    errors.weight = std::max(errors.weight, relative_error(weights, reference.weights));
    reference.weights = std::move(weights);
  }
  return errors;
}

}  // namespace backend_test
