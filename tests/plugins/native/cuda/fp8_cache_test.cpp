// kv_cache_dtype fp8 on a GPU: given text against a forward pass with the same casts, samples through graphs and
// cascades, sleep, and what it does not go with.
#include "plugins/native/model/executor.hpp"
#include "tests/plugins/native/cuda/gpu_model.hpp"
#include "tests/plugins/native/support/forced_run.hpp"
#include "tests/plugins/native/support/fp8_cache_gaps.hpp"
#include "tests/plugins/native/support/fp8_forward.hpp"

using namespace native_test;
using namespace hexad::native;

namespace {

ExecutorOptions options_of(int64_t sequences, int64_t rows) {
  ExecutorOptions options = gpu_options(sequences, rows);
  options.fp8_cache = true;
  return options;
}

std::vector<ForcedText> texts_of(int count) {
  std::vector<ForcedText> texts;
  for (int i = 0; i < count; ++i) texts.push_back(text_in_group(i, i / 4, 20 + 60 * (i / 4), 20 + i % 7, 997));
  return texts;
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: over a cache in e4m3 the executor gives the log-probs of a forward pass with the same casts") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      CAPTURE(family);
      CAPTURE(head_dim);
      const GpuModel model(family, head_dim);
      const std::vector<ForcedText> texts = texts_of(24);
      const ExecutorOptions options = options_of(12, 150);
      REQUIRE(runs_on_cuda(model.config, options));
      ForcedRun run(make_executor(model.config, options), model.config, at::kFloat8_e4m3fn, gpu_schedule(70, options),
                    kGpu);
      const c10::InferenceMode inference;
      run.executor->set_weights(model.on_gpu());
      const auto logprobs = run.run(texts);
      CHECK(run.preemptions > 0);
      CacheGaps gaps(model.config, model.weights, at::kBFloat16);
      for (size_t i = 0; i < texts.size(); ++i) {
        const auto first = size_t(texts[i].prompt_size);
        gaps.add(texts[i].tokens, first, logprobs[i].data() + first);
      }
      gaps.check();
    }
  }
}

TEST_CASE("native: samples over a cache in e4m3 through cascades and graphs, preempted ones too") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      CAPTURE(family);
      CAPTURE(head_dim);
      const GpuModel model(family, head_dim);
      Harness generator(in_fp8_cache(model.section(75, 40, 256)), kGpu);  // 150 blocks
      generator.update(model.weights, 3);
      const std::vector<Ask> asks = groups(12, 8, 150, 60, 997);
      const auto answers = generator.run(asks);
      CHECK(generator->preemptions() > 0);
      CacheGaps gaps(model.config, model.weights, at::kBFloat16);
      for (size_t i = 0; i < asks.size(); i += 7) gaps.add(asks[i], answers.at(asks[i].id));
      gaps.check();
    }
  }
}

TEST_CASE("native: over a cache in e4m3 graphs give what eager passes gave, before sleep and after") {
  const GpuModel model("qwen2", 64);
  Harness generator(in_fp8_cache(model.section(450, 48, 256)), kGpu);
  generator.update(model.weights, 3);
  const std::vector<Ask> asks = groups(6, 8, 150, 60, 997);
  const auto answers = generator.run(asks);
  const auto again = [&] {
    generator->flush_cache(generator.service());
    return generator.run(asks);
  };
  CHECK((again() == answers));
  generator->sleep(generator.service(), 1);
  generator->wake(generator.service());
  CHECK((again() == answers));
}

TEST_CASE("native: a cache in e4m3 beside weights in FP8") {
  const GpuModel model("qwen3", 128, 384);
  ExecutorOptions options = options_of(24, 4096);
  options.fp8 = true;
  REQUIRE(runs_on_cuda(model.config, options));
  ForcedRun run(make_executor(model.config, options), model.config, at::kFloat8_e4m3fn, gpu_schedule(800, options),
                kGpu);
  const c10::InferenceMode inference;
  run.executor->set_weights(model.on_gpu());
  std::vector<ForcedText> texts = texts_of(24);
  for (ForcedText& text : texts) text.tokens.resize(size_t(text.prompt_size) + 20);  // they end together
  const auto logprobs = run.run(texts);
  const auto lookup = [&](const std::string& name) { return model.weights.at(name); };
  const auto forward = [&](bool fp8_cache) {
    const Fp8Forward pass{model.config, lookup, int64_t{1} << 40, /*rounds=*/true, fp8_cache};
    return gap_of(logprobs, texts, [&](const auto& tokens) { return pass.logprobs(tokens, at::kCPU); });
  };
  const Gap same = forward(true), weights_alone = forward(false);
  MESSAGE(same.count, " tokens, error ", same.mult_prob_error(), "; without casts of the cache ",
          weights_alone.mult_prob_error());
  CHECK(same.mult_prob_error() < weights_alone.mult_prob_error());
}

TEST_CASE("native: the invariant decoder does not take a cache in e4m3") {
  const GpuModel model("llama", 64, 328, {{"vocab_size", 1000}});
  ExecutorOptions options = options_of(4, 64);
  options.deterministic = true;
  CHECK(!runs_on_cuda(model.config, options));  // ATen's operators do
  options.fp8_cache = false;
  CHECK(runs_on_cuda(model.config, options));
}

TEST_SUITE_END();
