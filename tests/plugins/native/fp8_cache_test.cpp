// kv_cache_dtype fp8 on a CPU: keys and values in e4m3, against a full forward pass with the same casts.

#include "tests/modeling/support/devices.hpp"
#include "tests/plugins/native/support/forced_run.hpp"
#include "tests/plugins/native/support/fp8_cache_gaps.hpp"
#include "tests/plugins/native/support/ranks.hpp"

using namespace native_test;
using hexad::native::ExecutorOptions;
using hexad::native::KvCache;

namespace {

// Texts in groups, without near ties. The prompt of a group is the same for all of it.
std::vector<ForcedText> sure_texts(const TinyModel& model) {
  std::vector<ForcedText> texts = texts_in_groups(12);
  for (ForcedText& text : texts) {
    std::vector<int32_t> prompt(text.tokens.begin(), text.tokens.begin() + text.prompt_size);
    avoid_near_ties(model.config, model.weights, prompt);
    std::copy(prompt.begin(), prompt.end(), text.tokens.begin());
    avoid_near_ties(model.config, model.weights, text.tokens, text.prompt_size);
  }
  return texts;
}

// Text decoded token by token with chunks in between, in a cache that is too small for all that run.
void check_executor(const TinyModel& model, const std::vector<ForcedText>& texts, MakeExecutor make,
                    const ExecutorOptions& options, int64_t block_size) {
  CAPTURE(model.config.family);
  CAPTURE(options.deterministic);
  CAPTURE(block_size);
  CAPTURE(options.device.str());
  ForcedRun run(make(model.config, options), model.config, at::kFloat8_e4m3fn, small_schedule(block_size),
                options.device);
  Weights weights;
  for (const auto& [name, tensor] : model.weights) weights[name] = tensor.to(options.device, options.dtype);
  run.executor->set_weights(std::move(weights));
  run.advance_at_random();
  const auto logprobs = run.run(texts);
  CHECK(run.preemptions > 0);
  CHECK((run.cache.keys(0).scalar_type() == at::kFloat8_e4m3fn));
  CacheGaps gaps(model.config, model.weights, options.dtype);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto first = size_t(texts[i].prompt_size);
    gaps.add(texts[i].tokens, first, logprobs[i].data() + first);
  }
  gaps.check();
}

int64_t capacity(const Json& section) {
  Harness generator(section);
  hexad_generator_info info{};
  generator->describe(generator.service(), info);
  return info.kv_capacity;
}

// A cache in e4m3 that is too small for all that run.
Json small_cache(const TinyModel& model) {
  Json section = in_fp8_cache(tight(model));
  section["native_cfg"]["kv_cache_gb"] = section["native_cfg"]["kv_cache_gb"].get<double>() / 4;
  return section;
}

void check_samples(const TinyModel& model, Harness& generator) {
  std::vector<Ask> asks = groups_of_samples(8, 4);
  for (Ask& ask : asks) avoid_near_ties(model.config, model.weights, ask.prompt);
  const auto answers = generator.run(asks);
  CHECK(generator->preemptions() > 0);
  CacheGaps gaps(model.config, model.weights, at::kFloat);
  for (const Ask& ask : asks) gaps.add(ask, answers.at(ask.id));
  gaps.check();
}

void of_ranks(const Rank& rank) {
  become(rank);
  const TinyModel model("llama", true,
                        {{"num_attention_heads", 8}, {"num_key_value_heads", 4}, {"intermediate_size", 60}});
  Harness generator(shared_by(small_cache(model), model.config, rank.world));
  check_samples(model, generator);
}

const bool added = backend_test::add_scenarios({{"fp8_cache", of_ranks}});

}  // namespace

TEST_CASE("every executor gives the log-probs of a forward pass whose keys and values went by way of e4m3") {
  const auto in_fp32 = [](at::Device device, bool deterministic) {
    return ExecutorOptions{at::kFloat, device, deterministic, 128};
  };
  for (const std::string& family : families()) {
    const TinyModel model(family, /*with_weights=*/false);
    const std::vector<ForcedText> texts = sure_texts(model);
    for (const int64_t block_size : {1, 4, 16})
      check_executor(model, texts, hexad::native::make_cpu_executor, in_fp32(at::kCPU, false), block_size);
    for (const at::Device device : hexad::modeling::test_devices())
      for (const bool deterministic : {false, true})
        check_executor(model, texts, hexad::native::make_aten_executor, in_fp32(device, deterministic), 4);
  }
  const TinyModel model("qwen3_moe", false);
  check_executor(model, sure_texts(model), hexad::native::make_aten_executor, in_fp32(at::kCPU, false), 4);
}

TEST_CASE("in bf16 they are as near to that pass as a plain pass in bf16 is") {
  for (const std::string& family : families()) {
    TinyModel model(family, /*with_weights=*/false);
    model.weights = in_dtype(in_dtype(model.weights, at::kBFloat16), at::kFloat);
    check_executor(model, texts_in_groups(12), hexad::native::make_cpu_executor, {at::kBFloat16, at::kCPU, false, 128},
                   4);
  }
}

TEST_CASE("samples over a cache in e4m3, in shared prompts, chunks and preempted, have those log-probs") {
  for (const std::string family : {"llama", "mistral", "qwen2_moe"}) {
    CAPTURE(family);
    const TinyModel model(family);
    Harness generator(small_cache(model));
    check_samples(model, generator);
  }
}

TEST_CASE("two ranks that share a model do so too") { rank_process::run("fp8_cache", 2); }

TEST_CASE("keys and values above 448 become 448 in the cache, and samples stay finite") {
  TinyModel model("llama", /*with_weights=*/false);
  for (auto& [name, weight] : model.weights)
    if (name.ends_with("k_proj.weight") || name.ends_with("v_proj.weight")) weight.mul_(2000);
  const hexad::native::SchedulerOptions schedule{
      .block_size = 4, .num_blocks = 40, .max_sequences = 4, .max_tokens = 64};
  for (const MakeExecutor make : {hexad::native::make_cpu_executor, hexad::native::make_aten_executor}) {
    ForcedRun run(make(model.config, {at::kFloat, at::kCPU, false, 128}), model.config, at::kFloat8_e4m3fn, schedule);
    run.executor->set_weights(model.weights);
    run.cache.allocate();
    for (int64_t layer = 0; layer < model.config.num_layers; ++layer)
      for (const at::Tensor& part : {run.cache.keys(layer), run.cache.values(layer)}) part.view(at::kByte).zero_();
    const std::vector<ForcedText> texts = {{random_prompt(1, 40), 30}};
    const std::vector<float> logprobs = run.run(texts)[0];
    for (size_t i = 30; i < logprobs.size(); ++i) CHECK(std::isfinite(logprobs[i]));
    const at::Tensor keys = run.cache.keys(1).to(at::kFloat);
    CHECK(keys.isfinite().all().item<bool>());
    CHECK(keys.abs().max().item<float>() == 448);
  }
}

TEST_CASE("a sample over a cache in e4m3 does not depend, bit for bit, on the batch") {
  for (const std::string precision : {"float32", "bfloat16"}) {
    CAPTURE(precision);
    const TinyModel model("qwen3");
    Json section = in_fp8_cache(tight(model, precision));
    section["native_cfg"]["deterministic"] = true;
    const std::vector<Ask> asks = groups_of_samples(5, 3);
    Harness batch(section), alone(section);
    const auto expected = batch.run(asks);
    for (const uint64_t id : {0, 7, 14}) CHECK(alone.run({asks[id]}).at(id) == expected.at(id));
  }
}

TEST_CASE("kv_cache_dtype fp8 holds twice the tokens of bfloat16 in the same memory, and auto is the model's type") {
  const TinyModel model("llama");
  const auto with = [&](const char* precision, const char* dtype) {
    const double bytes = 400.9 * double(KvCache::bytes_per_block(model.config, 16, at::kByte));
    return Json{{"model_name", model.path()},
                {"precision", precision},
                {"native_cfg", {{"kv_cache_dtype", dtype}, {"kv_cache_gb", bytes / (1024.0 * 1024.0 * 1024.0)}}}};
  };
  CHECK(capacity(with("bfloat16", "fp8")) == 400 * 16);
  CHECK(capacity(with("bfloat16", "fp8_e4m3")) == 400 * 16);
  CHECK(capacity(with("bfloat16", "auto")) == 200 * 16);
  CHECK(capacity(with("float32", "auto")) == 100 * 16);
}

TEST_CASE("a kv_cache_dtype that is none is refused, and fp8 with the batch-invariant mode") {
  const TinyModel model("llama");
  const auto refused = [&](const char* dtype, bool batch_invariant, hexad_code code) {
    return refusal(code, [&] {
      Harness generator({{"model_name", model.path()},
                         {"batch_invariant", batch_invariant},
                         {"native_cfg", {{"kv_cache_dtype", dtype}}}});
    });
  };
  CHECK(refused("fp8_e5m2", false, HEXAD_INVALID_ARGUMENT) ==
        "native_cfg.kv_cache_dtype: got 'fp8_e5m2', wanted auto, fp8 or fp8_e4m3");
  CHECK(refused("fp8", true, HEXAD_UNIMPLEMENTED) ==
        "policy.batch_invariant is true, but native_cfg.kv_cache_dtype is fp8, wanted auto; or set it to false");
}
