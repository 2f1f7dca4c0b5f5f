// FP8 training of a backend beside the same backend in bf16 and plain autograd in fp32.
#pragma once
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
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

inline double norm_of(const Weights& weights) {
  double squares = 0;
  for (const auto& [name, weight] : weights) squares += std::pow(weight.to(at::kDouble).norm().item<double>(), 2);
  return std::sqrt(squares);
}

// Of all gradients together, of one global batch. Collective.
inline double fp8_error(Instance& backend, Reference& reference, const std::vector<Sequence>& data) {
  auto batches = backend.batches(data, {2, false, false});
  reference.grads.clear();
  reference.train(data, kFp8Normalizer, kFp8Temperature);
  backend.train(batches, kFp8Normalizer, kFp8Temperature);
  Weights difference = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  for (auto& [name, grad] : difference) grad = grad.to(at::kCPU, at::kDouble) - reference.grads.at(name);
  return norm_of(difference) / norm_of(reference.grads);
}

// Losses of a few steps over the same data.
inline std::vector<double> losses(const json& config, int steps, double lr) {
  Instance backend(config);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  std::vector<double> all;
  auto batches = backend.batches(make_sequences(12, 4), {3, false, false});
  for (int step = 0; step < steps; ++step) {
    all.push_back(backend.train(batches, 60, 1));
    CHECK_FALSE(backend.step(lr, 0, 1).skipped);
  }
  return all;
}

// An FP8 product is off by 0.037 of its norm, with a gradient in e5m2 by 0.059 (tests/modeling/op/fp8_linear_test.cpp).
// Three blocks have 12 of them forward and 12 backward: sqrt(24) * 0.037, and sqrt(12 * 0.037^2 + 12 * 0.059^2).
inline double fp8_bound(const std::string& format) { return format == "hybrid" ? 0.24 : 0.18; }

// `config(model, precision, fp8_cfg)`: the policy. All of it is collective over the ranks there are.
template <typename Config>
void check_fp8_trains(const Config& config, const char* recipe = "tensorwise") {
  const TemporaryDir dir;
  const Weights weights = write_fp8_model(dir.path());
  const std::vector<Sequence> data = make_sequences(12, 5);
  std::map<std::string, double> error_of;  // in fp32, the last of the precisions
  for (const char* format : {"e4m3", "hybrid"}) {
    CAPTURE(format);
    for (const char* precision : {"bfloat16", "float32"}) {
      CAPTURE(precision);
      Reference reference(dir.path(), weights);
      Instance backend(config(dir.path(), precision, fp8_keys(format, recipe)));
      REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
      const double error = fp8_error(backend, reference, data);
      CHECK(error <= fp8_bound(format));
      CHECK(error >= 0.04);  // it did compute in FP8
      error_of[format] = error;
    }
  }
  CHECK(error_of["hybrid"] > 1.05 * error_of["e4m3"]);  // e5m2 has a bit less
  const json off = {{"enabled", false}};
  const std::vector<double> fp8 = losses(config(dir.path(), "bfloat16", fp8_keys("hybrid", recipe)), 12, 1e-2),
                            bf16 = losses(config(dir.path(), "bfloat16", off), 12, 1e-2);
  if (bf16.front() == 0) return;  // another rank counts
  const double gained = bf16.front() - bf16.back();
  INFO("bf16 from " << bf16.front() << " to " << bf16.back() << ", fp8 to " << fp8.back());
  CHECK(gained >= 0);
  CHECK(std::abs(fp8.back() - bf16.back()) <= 0.1 * gained);
  CHECK(fp8 != bf16);
}

// Log-probs of a batch are those that training sees, and gradients that are not finite skip the step.
template <typename Config>
void check_fp8_passes(const Config& config, const char* recipe) {
  const TemporaryDir dir;
  write_fp8_model(dir.path());
  Instance backend(config(dir.path(), "bfloat16", fp8_keys("e4m3", recipe)));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  Instance plain(config(dir.path(), "bfloat16", json{{"enabled", false}}));
  auto batches = backend.batches(make_sequences(4, 5), {4, false, false});
  const auto fp8 = backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kFp8Temperature),
             bf16 = plain.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kFp8Temperature);
  CHECK(fp8[0].equal(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, kFp8Temperature)[0]));
  const double error = (fp8[0] - bf16[0]).abs().mean().item<double>();
  CHECK(error <= 0.1);
  CHECK(error >= 1e-3);
  const Weights before = backend.weights(HEXAD_WEIGHTS_CURRENT);
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
