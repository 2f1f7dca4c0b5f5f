// Executors over the paged cache, on given text, against the full forward pass.

#include "tests/modeling/support/devices.hpp"
#include "tests/plugins/native/support/forced_run.hpp"

using namespace native_test;
using hexad::native::ExecutorOptions;

namespace {

struct Variant {
  const char* name;
  MakeExecutor make;
  bool deterministic;
};
const Variant kKernels{"cpu", hexad::native::make_cpu_executor, false};
const Variant kOperators{"aten", hexad::native::make_aten_executor, false};
const Variant kDeterministicOperators{"aten, deterministic", hexad::native::make_aten_executor, true};

// Text decoded token by token with chunks in between, in a cache that is too small for all that run.
void check_executor(const TinyModel& model, const Variant& variant, int64_t block_size, at::Device device) {
  CAPTURE(model.config.family);
  CAPTURE(variant.name);
  CAPTURE(block_size);
  CAPTURE(device.str());
  const std::vector<ForcedText> texts = texts_in_groups(12);
  ForcedRun run(variant.make(model.config, {at::kFloat, device, variant.deterministic, 128}), model.config, at::kFloat,
                small_schedule(block_size), device);
  Weights weights;
  for (const auto& [name, tensor] : model.weights) weights[name] = tensor.to(device);
  run.executor->set_weights(std::move(weights));
  run.advance_at_random();
  const auto logprobs = run.run(texts);
  CHECK(run.preemptions > 0);
  const Gap gap =
      gap_of(logprobs, texts, [&](const auto& tokens) { return full_forward(model.config, model.weights, tokens); });
  CHECK(gap.count > 100);
  CHECK(gap.largest < 2e-5);
}

}  // namespace

TEST_CASE("every executor gives the full forward's log-probs of given text, decoding and in chunks") {
  for (const std::string& family : families()) {
    const TinyModel model(family, /*with_weights=*/false);
    for (const int64_t block_size : {1, 4, 16}) check_executor(model, kKernels, block_size, at::kCPU);
    for (const at::Device device : hexad::modeling::test_devices()) {
      check_executor(model, kOperators, 4, device);
      check_executor(model, kDeterministicOperators, 4, device);
    }
  }
}
