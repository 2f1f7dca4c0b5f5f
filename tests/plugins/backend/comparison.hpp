// A backend in any layout beside plain autograd on one rank.
#pragma once
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

constexpr double kTemperature = 0.8, kLr = 3e-3, kDecay = 0.1, kMaxNorm = 0.4;

// What layout, packing and micro-batches may change at most, in fp32 on one device: the project's contract
// (CONTRIBUTING.md), of gradients, and here of losses, log-probs and norms too.
constexpr double kContract = 1e-5;

// `plain`: how far plain autograd is from the reference in the backend's type and on its device, on the same weights
// and tokens. That is what rounding costs there; in fp32 on a CPU nothing but for log-probs, for it is the reference.
// Beyond the contract a backend may be off by twice as much, as in FlashAttention's tests: four times as many
// roundings, whose squares add up.
constexpr double bound_of(double plain) { return kContract + 2 * plain; }

// Of weights after AdamW of the same gradients. Each side rounds w (1 - lr decay) - u three times, by at most 2^-24;
// the roundings of u, at most a hundredth of the weights, are less than a fourth: eight in all. In bfloat16 there are
// two of 2^-8 instead: of the weights that the reference starts from, and of those that the backend ends with.
constexpr double weight_bound(bool bfloat16) { return bfloat16 ? 0x1p-7 : 0x1p-21; }

struct Errors {
  double loss = 0, grad = 0, weight = 0, norm = 0, logprob = 0;
};

struct BoundedErrors : Errors {
  Errors plain;  // of plain autograd; 0 where it is the reference
  Errors bound;
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

// Where the backend computes.
inline at::Device run_device() {
  const DLDevice device = runtime_test::device();
  return test_device::is_gpu() ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.device_id)) : at::kCPU;
}

inline Weights moved(Weights weights, at::Device device, at::ScalarType type) {
  for (auto& [name, weight] : weights) weight = weight.to(device, type);
  return weights;
}

// Plain autograd in `type` where the backend computes, from the reference's weights, before both take the same step.
template <typename R>
R plain_like(R reference, at::ScalarType type = at::kFloat) {
  reference.device = run_device();
  reference.weights = moved(std::move(reference.weights), reference.device, type);
  reference.grads.clear();
  return reference;
}

inline double magnitude(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, double x) { return sum + std::abs(x); });
}

// What `plain` is off by after the same train as the reference's. One number may be right by chance: the loss is judged
// by the differences of its parts, the norm by the gradients' difference, which is as large at least.
inline void add_errors_of_train(const Reference& plain, const Reference& reference, Errors& errors) {
  std::vector<double> differences;
  for (size_t i = 0; i < plain.losses.size(); ++i) differences.push_back(plain.losses[i] - reference.losses[i]);
  errors.loss = worse(errors.loss, magnitude(differences) / magnitude(reference.losses));
  errors.grad = worse(errors.grad, relative_error(plain.grads, reference.grads));
  errors.norm = worse(errors.norm, distance(plain.grads, reference.grads) / reference.grad_norm());
}

inline void add_errors_of_logprobs(const Reference& plain, const Reference& reference,
                                   const std::vector<Sequence>& data, Errors& errors) {
  const at::NoGradGuard no_grad;
  for (const Sequence& sequence : data) {
    const at::Tensor got = plain.outputs(plain.weights, sequence, kTemperature).first.cpu(),
                     want = reference.outputs(reference.weights, sequence, kTemperature).first;
    errors.logprob = worse(errors.logprob, (got - want).abs().max().item<double>());
  }
}

// What plain autograd is off by after the same step as the reference's. Where both are one, in fp32 on a CPU, log-probs
// are measured all the same, between fp32 and fp64: their errors are no ratios, and grow with the logits.
inline void add_plain_errors(const Reference& reference, at::ScalarType type, const std::vector<Sequence>& data,
                             Errors& errors) {
  const bool is_reference = type == at::kFloat && !test_device::is_gpu();
  const at::ScalarType own = reference.weights.begin()->second.scalar_type();
  Reference plain = plain_like(reference, !is_reference ? type : own == at::kFloat ? at::kDouble : at::kFloat);
  add_errors_of_logprobs(plain, reference, data, errors);
  if (is_reference) return;
  plain.train(data, static_cast<double>(total_tokens(data)), kTemperature);
  add_errors_of_train(plain, reference, errors);
}

// fp32 is what it says: one product in TF32 is off by as much.
inline void check_fp32(const Errors& plain) { CHECK(plain.grad <= 0x1p-12); }

// From the errors of plain autograd.
inline void add_bounds(BoundedErrors& errors, bool bfloat16) {
  const Errors& plain = errors.plain;
  errors.bound = {bound_of(plain.loss), bound_of(plain.grad), weight_bound(bfloat16), bound_of(plain.norm),
                  bound_of(plain.logprob)};
  if (!bfloat16) check_fp32(plain);
}

// One step of both from the same weights; `type`: in which the backend computes.
inline void compare_step(Instance& backend, Reference& reference, at::ScalarType type,
                         const std::vector<Sequence>& data, const Packing& packing, BoundedErrors& errors) {
  const bool judge = is_judge();
  const double normalizer = static_cast<double>(total_tokens(data));
  const at::ScalarType own = reference.weights.begin()->second.scalar_type();
  errors.logprob = worse(errors.logprob, logprob_error(backend, reference, data, packing));
  const double want = judge ? reference.train(data, normalizer, kTemperature) : 0;
  if (judge) add_plain_errors(reference, type, data, errors.plain);
  auto batches = backend.batches(data, packing);
  const double factor = packing.mean ? 1.0 / static_cast<double>(batches.size()) : 1;
  const double got = sum_over_ranks(backend.train(batches, normalizer, kTemperature, factor));
  const Weights grads = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  const double norm = sum_over_ranks(judge ? reference.grad_norm() : 0);
  errors.norm = worse(errors.norm, std::abs(backend.step(kLr, kDecay, kMaxNorm).grad_norm - norm) / norm);
  Weights weights = moved(backend.weights(HEXAD_WEIGHTS_CURRENT), at::kCPU, own);
  if (judge) {
    errors.loss = worse(errors.loss, std::abs(got - want) / magnitude(reference.losses));
    errors.grad = worse(errors.grad, relative_error(grads, reference.grads));
    reference.grads = moved(grads, at::kCPU, own);
    reference.step(kLr, kDecay, kMaxNorm);
    errors.weight = worse(errors.weight, relative_error(weights, reference.weights));
  }
  reference.weights = std::move(weights);
}

// Three steps of the backend beside three of the reference; the largest differences, all of them on rank 0, of
// log-probs and norms each rank's own. Each step starts from the same weights, and AdamW has the backend's gradients on
// both sides: it magnifies rounding where gradients vanish, and those errors would be counted again. `policy_of` makes
// the configuration of a model's folder; with `bfloat16` the backend computes in it, and the reference in fp32 with
// weights that are rounded alike. `exact`: the reference computes in fp64, so that its own rounding is no part of the
// errors.
inline BoundedErrors three_steps(const nlohmann::json& model, const Packing& packing,
                                 const std::function<json(const std::filesystem::path&)>& policy_of,
                                 const std::string& plugin = plugin_name(), bool bfloat16 = false, bool exact = false) {
  const TemporaryDir folder;
  const std::filesystem::path& dir = folder.path();
  Reference reference(dir, write_model(dir, model));
  const json policy = policy_of(dir);
  reference.decays_matrices_only = policy.contains("megatron_cfg");
  Instance backend(policy, plugin);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const at::ScalarType type = bfloat16 ? at::kBFloat16 : at::kFloat;
  reference.weights = moved(moved(reference.weights, at::kCPU, type), at::kCPU, exact ? at::kDouble : at::kFloat);
  BoundedErrors errors;
  for (int step = 0; step < 3; ++step)
    compare_step(backend, reference, type, make_sequences(11, step), packing, errors);
  Errors& plain = errors.plain;  // rank 0's
  for (double* error : {&plain.loss, &plain.grad, &plain.norm, &plain.logprob}) *error = sum_over_ranks(*error);
  add_bounds(errors, bfloat16);
  return errors;
}

}  // namespace backend_test
