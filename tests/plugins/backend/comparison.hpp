// A backend in any layout beside plain autograd on one rank.
#pragma once
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

constexpr double kTemperature = 0.8, kLr = 3e-3, kDecay = 0.1, kMaxNorm = 0.4;

// A bound of fp32 that holds on the CPU, for this run's device. Beside the reference on the CPU a GPU, whose kernels
// take exponentials to 2^-21 and sum in another order, was measured to be off by up to three times as much.
//
// An estimate of that: a sum of n terms has an error of sqrt(n / 6) u, u = 2^-24, 2.2 u for 30 terms. On a CPU the
// backend runs the reference's kernels, and only sums that a layout cuts differ, some 17 in a chain through four
// blocks: on both sides sqrt(2 * 17) * 2.2 u = 13 u. On a GPU all 72 differ, 26 u, and 19 exponentials add 4.6 u each,
// 20 u: together 33 u, 2.6 times as much in the root of the mean square. The worst of many tensors lies above it; 4 is
// not derived.
inline double device_bound(double on_cpu) { return test_device::is_gpu() ? 4 * on_cpu : on_cpu; }

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
      worst = worse(worst, (got[b].slice(0, begin, end) - want).abs().max().item<double>());
    }
  }
  return worst;
}

// Does this rank compute the reference's steps? One does: on many ranks they would be most of the work.
inline bool is_judge() {
  hexad_comm* world = nullptr;
  runtime_test::check_ok(runtime_test::runtime().comm_axis("world", &world));
  return !world || runtime_test::runtime().comm_rank(world) == 0;
}

// One step of both from the same weights.
inline void compare_step(Instance& backend, Reference& reference, const std::vector<Sequence>& data,
                         const Packing& packing, Errors& errors) {
  const bool judge = is_judge();
  const double normalizer = static_cast<double>(total_tokens(data));
  errors.logprob = worse(errors.logprob, logprob_error(backend, reference, data, packing));
  const double want = judge ? reference.train(data, normalizer, kTemperature) : 0;
  auto batches = backend.batches(data, packing);
  const double factor = packing.mean ? 1.0 / static_cast<double>(batches.size()) : 1;
  const double got = sum_over_ranks(backend.train(batches, normalizer, kTemperature, factor));
  const Weights grads = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  const double norm = sum_over_ranks(judge ? reference.grad_norm() : 0);
  errors.norm = worse(errors.norm, std::abs(backend.step(kLr, kDecay, kMaxNorm).grad_norm - norm) / norm);
  Weights weights = backend.weights(HEXAD_WEIGHTS_CURRENT);
  for (auto& [name, weight] : weights) weight = weight.to(reference.dtype);
  if (judge) {
    errors.loss = worse(errors.loss, std::abs(got - want) / reference.loss_magnitude);
    errors.grad = worse(errors.grad, relative_error(grads, reference.grads));
    reference.step(kLr, kDecay, kMaxNorm);
    errors.weight = worse(errors.weight, relative_error(weights, reference.weights));
  }
  reference.weights = std::move(weights);
}

// Three steps of the backend beside three of the reference; the largest differences, all of them on rank 0, of
// log-probs and norms each rank's own. Adam's division magnifies rounding where gradients vanish, so each step starts
// from the same weights: those errors would otherwise be counted again. `policy_of` makes the configuration of a
// model's folder; with `bfloat16` the backend computes in it, and the reference in fp32 with weights that are rounded
// alike. `exact`: the reference computes in fp64, so that its own rounding is no part of the errors.
inline Errors three_steps(const nlohmann::json& model, const Packing& packing,
                          const std::function<json(const std::filesystem::path&)>& policy_of,
                          const std::string& plugin = plugin_name(), bool bfloat16 = false, bool exact = false) {
  const TemporaryDir folder;
  const std::filesystem::path& dir = folder.path();
  Reference reference(dir, write_model(dir, model));
  const json policy = policy_of(dir);
  reference.decays_matrices_only = policy.contains("megatron_cfg");
  Instance backend(policy, plugin);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  if (bfloat16)
    for (auto& [name, weight] : reference.weights) weight = weight.to(at::kBFloat16).to(at::kFloat);
  if (exact) reference.dtype = at::kDouble;
  for (auto& [name, weight] : reference.weights) weight = weight.to(reference.dtype);
  Errors errors;
  for (int step = 0; step < 3; ++step) compare_step(backend, reference, make_sequences(11, step), packing, errors);
  return errors;
}

}  // namespace backend_test
