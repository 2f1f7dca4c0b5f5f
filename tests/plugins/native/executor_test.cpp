// Executors over the paged cache, on given text, against the full forward pass.
#include <random>

#include "tests/plugins/native/support/forced_run.hpp"

using namespace native_test;
using hexad::native::ExecutorOptions;

namespace {

std::vector<ForcedText> texts_in_groups(int count) {
  std::vector<ForcedText> texts;
  for (int i = 0; i < count; ++i) {
    const uint64_t group = uint64_t(i) / 3;
    ForcedText text{random_prompt(group, 5 + 9 * int64_t(group) % 31), 0, group};
    text.prompt_size = static_cast<int64_t>(text.tokens.size());
    const std::vector<int32_t> rest = random_prompt(100 + uint64_t(i), 10 + i % 25);
    text.tokens.insert(text.tokens.end(), rest.begin(), rest.end());
    texts.push_back(std::move(text));
  }
  return texts;
}

using Make = std::unique_ptr<hexad::native::Executor> (*)(const hexad::modeling::ModelConfig&, const ExecutorOptions&);

struct Variant {
  const char* name;
  Make make;
  bool deterministic;
};
const Variant kVariants[] = {{"cpu", hexad::native::make_cpu_executor, false},
                             {"aten", hexad::native::make_aten_executor, false},
                             {"aten, deterministic", hexad::native::make_aten_executor, true}};

}  // namespace

TEST_CASE("every executor gives the full forward's log-probs of given text, decoding and in chunks") {
  const std::vector<ForcedText> texts = texts_in_groups(12);
  for (const std::string& family : families()) {
    const TinyModel model(family, /*with_weights=*/false);
    for (const Variant& variant : kVariants) {
      for (const int64_t block_size : {1, 4, 16}) {
        if (variant.make == hexad::native::make_aten_executor && block_size != 4) continue;  // slow at this size
        CAPTURE(family);
        CAPTURE(variant.name);
        CAPTURE(block_size);
        ForcedRun run(variant.make(model.config, {at::kFloat, at::kCPU, variant.deterministic, 128}), model.config,
                      at::kFloat,
                      {.block_size = block_size, .num_blocks = 80 / block_size, .max_sequences = 7, .max_tokens = 11});
        run.executor->set_weights(model.weights);
        std::mt19937_64 rng(3);
        run.advance = [&] { return rng() % 3 ? int64_t{1} : int64_t(1 + rng() % 6); };
        const auto logprobs = run.run(texts);
        CHECK(run.preemptions > 0);
        const Gap gap = gap_of(logprobs, texts,
                               [&](const auto& tokens) { return full_forward(model.config, model.weights, tokens); });
        CHECK(gap.count > 100);
        CHECK(gap.largest < 2e-5);
      }
    }
  }
}
