// FP8 training of a backend beside a plain step in FP8, and one in fp32.
#pragma once
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/fp8_reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

// Sizes that FP8 takes, on two tensor-parallel ranks too.
inline json fp8_model() {
  json model = tiny_config("llama");
  model.update({{"hidden_size", 64},
                {"num_attention_heads", 4},
                {"num_key_value_heads", 2},
                {"head_dim", 16},
                {"intermediate_size", 96}});
  return model;
}

inline Weights write_fp8_model(const std::filesystem::path& dir, const json& model = fp8_model()) {
  Weights weights = write_model(dir, model);
  for (auto& [name, weight] : weights)
    if (weight.dim() == 2) weight.mul_(0.3);  // as steep as trained models are
  write_weights(dir, weights);
  return weights;
}

// `section` of the policy with FP8 on.
inline json fp8_keys(const char* format, const char* recipe = "tensorwise") {
  return {{"enabled", true}, {"fp8", format}, {"fp8_recipe", recipe}};
}

constexpr double kFp8Temperature = 0.9, kFp8Normalizer = 30;

// Experts of a micro-batch, as a rollout hands them over (replay.hpp).
using Route = std::function<at::Tensor(const Pack&)>;

inline hexad::modeling::MoeRuns routed_runs(const hexad::modeling::ModelConfig& config, const Route& route,
                                            const Pack& pack) {
  if (!route) return {};
  return [&config, routed = route(pack).to(at::kLong)](int64_t layer) {
    int64_t place = 0;  // among the layers with experts
    for (int64_t before = 0; before < layer; ++before) place += config.has_experts(before);
    hexad::modeling::MoeRun run;
    run.route.selected = routed.select(1, place);
    return run;
  };
}

// Of even lengths, which two tensor-parallel ranks share: tokens that fill up would have a say in scales.
inline std::vector<Sequence> even_sequences(int64_t count, int seed) {
  std::vector<Sequence> data = make_sequences(static_cast<int>(count), seed);
  for (Sequence& sequence : data)
    if (sequence.ids.size() % 2 == 1) sequence.ids.push_back(7), sequence.weight.push_back(0.5f);
  return data;
}

// Distances of gradients, all together, relative to those of the same step in fp32.
struct Fp8Errors {
  double backend = 0, plain = 0;  // from them: what FP8 costs the backend, and a plain step
  double apart = 0;               // of the two
};

// One step, which the backend takes. Collective. `type`: of the backend's activations, and so of the plain step's,
// which has the backend's weights, micro-batches and tensor-parallel parts too, for these share a scale. `route`:
// experts of all.
inline Fp8Errors fp8_errors(Instance& backend, Fp8Reference plain, at::ScalarType type,
                            const std::vector<Sequence>& data, const Route& route) {
  const Packing packing{2, false, false};
  const hexad_backend_info& info = backend.info();
  const auto packs = packs_of(data, packing, static_cast<size_t>(info.dp_size));
  const std::vector<Pack>& mine = packs[static_cast<size_t>(info.dp_rank)];
  auto batches = backend.batches(data, packing);
  for (size_t b = 0; route && b < batches.size(); ++b)
    batches[b].give_experts(b < mine.size() ? route(mine[b]) : at::Tensor());
  plain.ranks = info.tp_size;
  plain.weights = moved(backend.weights(HEXAD_WEIGHTS_CURRENT), at::kCPU, type);
  Reference exact = plain;
  exact.weights = moved(plain.weights, at::kCPU, at::kFloat);
  const auto runs = [&](const Pack& pack) { return routed_runs(plain.config, route, pack); };
  for (Reference* reference : {static_cast<Reference*>(&plain), &exact})
    for (const std::vector<Pack>& of_rank : packs) reference->train(of_rank, kFp8Normalizer, kFp8Temperature, runs);
  backend.train(batches, kFp8Normalizer, kFp8Temperature);
  const Weights got = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  CHECK_FALSE(backend.step(1e-2, 0, 1).skipped);
  const double norm = exact.grad_norm();
  return {distance(got, exact.grads) / norm, distance(plain.grads, exact.grads) / norm,
          distance(got, plain.grads) / norm};
}

// A bit of mantissa more or less in all casts would halve or double the error: half a bit is the bound.
inline void check_fp8_error(double backend, double plain) {
  CHECK(backend <= std::sqrt(2.0) * plain);
  CHECK(backend >= std::sqrt(0.5) * plain);
}

// The backend's step beside the plain one. Collective.
//
// In fp32 on a CPU they are the same, to the contract of fp32, unless a value lies so near to the middle between two
// FP8 numbers that it goes the other way, and moves all that is behind it. A step of two sequences casts some 2^15
// values that are off by some 2^-22, the 2^-18th part of the distance of FP8 numbers: most steps have no such value,
// and one of eight certainly. bfloat16 is off by the 2^-6th part, and tensor cores sum in fewer bits than fp32 has:
// there every step has such values, and the two are equally far from the step in fp32.
inline void check_fp8_step(Instance& backend, const Fp8Reference& plain, at::ScalarType type, const Route& route) {
  Fp8Errors errors;
  if (type != at::kFloat || test_device::is_gpu()) {
    errors = fp8_errors(backend, plain, type, even_sequences(12, 5), route);
    INFO("from fp32: backend " << errors.backend << ", plain step " << errors.plain);
    return check_fp8_error(errors.backend, errors.plain);
  }
  errors.apart = INFINITY;
  for (int seed = 5; seed < 13 && errors.apart > kContract; ++seed) {
    errors = fp8_errors(backend, plain, type, even_sequences(2 * backend.info().dp_size, seed), route);
    errors.apart = sum_over_ranks(is_judge() ? errors.apart : 0);  // all ranks go on, or none
  }
  CHECK(errors.apart <= kContract);
}

// `config(model, precision, fp8_cfg)`: the policy. All of it is collective over the ranks there are.
template <typename Config>
void check_fp8_trains(const Config& config, const char* recipe = "tensorwise", const json& model = fp8_model(),
                      const Route& route = {}) {
  const TemporaryDir dir;
  const Weights weights = write_fp8_model(dir.path(), model);
  for (const char* format : {"e4m3", "hybrid"})
    for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
      if (type == at::kFloat && route && test_device::is_gpu()) continue;  // experts are in FP8 beside bf16 alone there
      INFO(recipe << " " << format << " beside " << at::toString(type));
      Instance backend(config(dir.path(), type == at::kFloat ? "float32" : "bfloat16", fp8_keys(format, recipe)));
      REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
      const Fp8Reference plain(dir.path(), weights, format, recipe);
      for (int step = 0; step < 2; ++step) check_fp8_step(backend, plain, type, route);  // then with other weights
    }
}

// Log-probs of a batch are those that training sees, and gradients that are not finite skip the step.
template <typename Config>
void check_fp8_passes(const Config& config, const char* recipe) {
  const TemporaryDir dir;
  Fp8Reference plain(dir.path(), write_fp8_model(dir.path()), "e4m3", recipe);
  Instance backend(config(dir.path(), "bfloat16", fp8_keys("e4m3", recipe)));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const Packing packing{4, false, false};
  const std::vector<Sequence> data = make_sequences(48, 5);
  auto batches = backend.batches(data, packing);
  const auto logprobs = [&] { return at::cat(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kFp8Temperature)); };
  const Weights before = backend.weights(HEXAD_WEIGHTS_CURRENT);
  const at::Tensor got = logprobs();
  CHECK(got.equal(logprobs()));
  plain.weights = moved(before, at::kCPU, at::kBFloat16);
  Reference exact = plain;
  exact.weights = moved(plain.weights, at::kCPU, at::kFloat);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> in_fp8, in_fp32;
  const std::vector<Pack> packs = packs_of(data, packing, 1)[0];
  for (const Pack& pack : packs) {
    in_fp8.push_back(plain.outputs(plain.weights, pack, kFp8Temperature).first);
    in_fp32.push_back(exact.outputs(exact.weights, pack, kFp8Temperature).first);
  }
  check_fp8_error(relative_error(got, at::cat(in_fp32)), relative_error(at::cat(in_fp8), at::cat(in_fp32)));
  backend.train(batches, kFp8Normalizer, kFp8Temperature, NAN);
  CHECK(backend.step(1e-2, 0, 1).skipped == 1);
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT), before));
}

// The recipe says how values are scaled: each has log-probs of its own.
template <typename Config>
void check_fp8_recipes(const Config& config) {
  const TemporaryDir dir;
  write_fp8_model(dir.path());
  const auto logprobs = [&](const char* recipe) {
    Instance backend(config(dir.path(), "bfloat16", fp8_keys("e4m3", recipe)));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    auto batches = backend.batches(make_sequences(4, 5), {4, false, false});
    return backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kFp8Temperature)[0];
  };
  CHECK_FALSE(logprobs("tensorwise").equal(logprobs("blockwise")));
}

// `section`: as messages name it.
template <typename Config>
void check_fp8_errors(const Config& config, const std::string& section) {
  const TemporaryDir dir;
  write_fp8_model(dir.path());
  const auto error = [&](const json& keys) {
    json all = fp8_keys("e4m3");
    all.update(keys);
    Instance backend(config(dir.path(), "bfloat16", all));
    CHECK(backend.code() != HEXAD_OK);
    return backend.error();
  };
  const std::string at = "policy." + section + ".fp8_cfg.";
  CHECK(error({{"fp8", "e5m2"}}) == at + "fp8 is 'e5m2', wanted e4m3 or hybrid");
  CHECK(error({{"fp8_recipe", "mxfp8"}}) ==
        at + "fp8_recipe is 'mxfp8', which is not available: wanted tensorwise or blockwise");
  CHECK(error({{"fp8_param", true}}) == at + "fp8_param is true: parameters in FP8 are not available, wanted false");
}

}  // namespace backend_test
