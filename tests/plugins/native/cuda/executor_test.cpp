// The generator on a GPU in bf16: given text and its own samples against the full forward pass, through graphs,
// cascades, preemption and passes in flight.
#include "plugins/native/cuda/cuda_executor.hpp"

#include <random>

#include "tests/plugins/native/support/forced_run.hpp"
#include "tests/plugins/native/support/tight.hpp"

using namespace native_test;

namespace {

const at::Device kGpu(at::kCUDA, 0);

// What the kernels can run: heads of 64 or 128.
nlohmann::json config_of(const std::string& family, int64_t head_dim) {
  nlohmann::json config = tiny_config(family);
  config.update({{"hidden_size", 256},
                 {"intermediate_size", 328},
                 {"num_attention_heads", 6},
                 {"vocab_size", 997},
                 {"num_key_value_heads", 2},
                 {"head_dim", head_dim},
                 {"max_position_embeddings", 2048},
                 {"initializer_range", 0.1}});
  config.erase("sliding_window");
  return config;
}

struct GpuModel {
  hexad::modeling::TemporaryDir dir;
  hexad::modeling::ModelConfig config;
  Weights weights;  // of bf16 values, in fp32 on the CPU

  GpuModel(const std::string& family, int64_t head_dim) {
    hexad::modeling::write_file(dir / "config.json", config_of(family, head_dim).dump());
    config = hexad::modeling::load_model_config(dir.path());
    for (const auto& [name, weight] : random_weights(config, 7)) {
      const bool matrix = weight.dim() == 2;
      weights[name] = (matrix ? weight * 0.2 : weight).to(at::kBFloat16).to(at::kFloat);
    }
  }
  Weights on_gpu() const {
    Weights result;
    for (const auto& [name, weight] : weights) result[name] = weight.to(at::kBFloat16).to(kGpu);
    return result;
  }
  Json section(int64_t blocks, int64_t running, int64_t rows) const {
    const double bytes = double(hexad::native::KvCache::bytes_per_block(config, 16, at::kBFloat16));
    return {{"model_name", dir.path().string()},
            {"precision", "bfloat16"},
            {"max_total_sequence_length", 2048},
            {"native_cfg",
             {{"kv_block_size", 16},
              {"kv_cache_gb", (double(blocks) + 0.5) * bytes / 1073741824.0},
              {"max_num_seqs", running},
              {"max_num_batched_tokens", rows}}}};
  }
};

std::vector<Ask> groups(int count, int samples, int64_t prompt, int64_t new_tokens, int64_t vocab) {
  std::vector<Ask> asks;
  for (int group = 0; group < count; ++group) {
    for (int sample = 0; sample < samples; ++sample) {
      const uint64_t id = asks.size();
      asks.push_back({.id = id,
                      .prompt = random_prompt(uint64_t(group), prompt + 11 * group, vocab),
                      .max_new_tokens = new_tokens + int64_t(id % 5),
                      .group = uint64_t(group),
                      .seed = 1000 + id});
    }
  }
  return asks;
}

void compare(const GpuModel& model, const std::vector<Ask>& asks, const std::map<uint64_t, Answer>& answers, Gap& gap,
             size_t stride = 1) {
  for (size_t i = 0; i < asks.size(); i += stride) {
    const Answer& answer = answers.at(asks[i].id);
    REQUIRE(answer.error == "");
    std::vector<int32_t> tokens = asks[i].prompt;
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    const std::vector<float> want = full_forward(model.config, model.weights, tokens);
    for (size_t t = 0; t < answer.tokens.size(); ++t) gap.add(answer.logprobs[t], want[asks[i].prompt.size() + t]);
  }
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: the CUDA executor gives the full forward's log-probs of given text, decoding and in chunks") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      CAPTURE(family);
      CAPTURE(head_dim);
      const GpuModel model(family, head_dim);
      std::vector<ForcedText> texts;
      for (int i = 0; i < 24; ++i) {
        const uint64_t group = uint64_t(i) / 4;
        ForcedText text{random_prompt(group, 20 + 60 * int64_t(group), 997), 0, group};
        text.prompt_size = int64_t(text.tokens.size());
        const std::vector<int32_t> rest = random_prompt(100 + uint64_t(i), 20 + i % 7, 997);
        text.tokens.insert(text.tokens.end(), rest.begin(), rest.end());
        texts.push_back(std::move(text));
      }
      const hexad::native::SchedulerOptions schedule{
          .block_size = 16, .num_blocks = 70, .max_sequences = 12, .max_tokens = 150};
      const hexad::native::ExecutorOptions options{.dtype = at::kBFloat16,
                                                   .device = kGpu,
                                                   .deterministic = false,
                                                   .max_length = 512,
                                                   .max_sequences = 12,
                                                   .max_tokens = 150};
      REQUIRE(hexad::native::runs_on_cuda(model.config, options));
      ForcedRun run(hexad::native::make_executor(model.config, options), model.config, at::kBFloat16, schedule, kGpu);
      const c10::InferenceMode inference;
      run.executor->set_weights(model.on_gpu());
      std::mt19937_64 rng(3);
      run.advance = [&] { return rng() % 3 ? int64_t{1} : int64_t(1 + rng() % 6); };
      const auto logprobs = run.run(texts);
      CHECK(run.preemptions > 0);
      const Gap gap = gap_of(logprobs, texts,
                             [&](const auto& tokens) { return full_forward(model.config, model.weights, tokens); });
      MESSAGE(family, " ", head_dim, ": ", gap.count, " tokens, largest ", gap.largest, ", error ",
              gap.mult_prob_error());
      CHECK(gap.count > 200);
      CHECK(gap.mult_prob_error() < 1.02);
      CHECK(gap.largest < 0.15);
    }
  }
}

TEST_CASE("native: samples of groups on a GPU have the full forward's log-probs, preempted ones too") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      CAPTURE(family);
      CAPTURE(head_dim);
      const GpuModel model(family, head_dim);
      Harness generator(model.section(150, 40, 256), kGpu);
      generator.update(model.weights, 3);
      const std::vector<Ask> asks = groups(12, 8, 150, 60, 997);
      const auto answers = generator.run(asks);
      CHECK(generator->preemptions() > 0);
      for (const Ask& ask : asks) {
        CHECK(answers.at(ask.id).finish == HEXAD_FINISH_LENGTH);
        CHECK(int64_t(answers.at(ask.id).tokens.size()) == ask.max_new_tokens);
        CHECK((answers.at(ask.id).spans == std::vector<std::pair<int64_t, int64_t>>{{0, 3}}));
      }
      Gap gap;
      compare(model, asks, answers, gap, 7);
      MESSAGE(family, " ", head_dim, ": ", gap.count, " tokens, largest ", gap.largest, ", error ",
              gap.mult_prob_error());
      CHECK(gap.mult_prob_error() < 1.02);
      CHECK(gap.largest < 0.15);
    }
  }
}

TEST_CASE("native: stop tokens end a GPU's samples exactly, though they are seen a pass late") {
  const GpuModel model("llama", 64);
  Harness generator(model.section(400, 32, 256), kGpu);
  generator.update(model.weights, 0);
  std::vector<Ask> asks = groups(4, 8, 30, 120, 997);
  for (Ask& ask : asks)
    for (int32_t id = 0; id < 40; ++id) ask.stop_token_ids.push_back(id * 20);
  const auto answers = generator.run(asks);
  size_t stopped = 0;
  for (const Ask& ask : asks) {
    const Answer& answer = answers.at(ask.id);
    for (size_t t = 0; t < answer.tokens.size(); ++t) {
      const bool stop = answer.tokens[t] % 20 == 0 && answer.tokens[t] < 800, last = t + 1 == answer.tokens.size();
      CHECK((!stop || last));
      stopped += stop;
    }
    CHECK(answer.logprobs.size() == answer.tokens.size());
    CHECK((answer.finish == HEXAD_FINISH_STOP) == (answer.tokens.back() % 20 == 0 && answer.tokens.back() < 800));
  }
  CHECK(stopped > 20);
}

TEST_CASE("native: updates, cancels and sleep while a GPU has passes in flight") {
  const GpuModel model("qwen3", 128);
  Harness generator(model.section(300, 32, 256), kGpu);
  generator.update(model.weights, 0);
  const std::vector<Ask> asks = groups(6, 8, 90, 80, 997);
  generator.submit(asks);
  const auto passes = [&](int count) {
    while (count-- > 0) generator.poll(0);
  };
  passes(9);
  const uint64_t cancelled[] = {1, 20, 999};
  generator->cancel(generator.service(), cancelled);
  passes(3);
  generator->sleep(generator.service(), 1);
  passes(2);
  generator->wake(generator.service());
  passes(12);
  generator.update(model.weights, 6);
  passes(10);
  generator->sleep(generator.service(), 2);
  generator->wake(generator.service());
  passes(2);
  generator.update(model.weights, 7);
  const auto& answers = generator.run();
  std::vector<Ask> ended;
  for (const Ask& ask : asks) {
    const bool whole = ask.id != 1 && ask.id != 20;
    CHECK(answers.at(ask.id).finish == (whole ? HEXAD_FINISH_LENGTH : HEXAD_FINISH_ABORT));
    CHECK(answers.at(ask.id).tokens.size() == answers.at(ask.id).logprobs.size());
    if (whole) CHECK(int64_t(answers.at(ask.id).tokens.size()) == ask.max_new_tokens);
    if (whole) ended.push_back(ask);
  }
  Gap gap;
  compare(model, ended, answers, gap, 5);
  CHECK(gap.mult_prob_error() < 1.02);
  CHECK(gap.largest < 0.15);
}

TEST_SUITE_END();
