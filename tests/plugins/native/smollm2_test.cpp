// Log-probs of the generator against the full forward pass on a real model, over real text and its own samples.
// HEXAD_SMOLLM2_DIR names the Hugging Face directory of SmolLM2-135M-Instruct, which `make test` makes; skipped
// without.
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "lib/text/tokenizer/tokenizer.hpp"
#include "modeling/weight/safetensors_reader.hpp"
#include "tests/plugins/native/support/forced_run.hpp"
#include "tests/plugins/native/support/harness.hpp"
#include "tests/support/report.hpp"

using namespace native_test;

namespace {

constexpr int64_t kTokens = 4000;
// A CPU that does not multiply in bf16 (AVX-512 or AMX) takes ten times as long as in fp32.
constexpr int64_t kRoundedTokens = 400;

struct RealModel {
  std::string dir;
  hexad::modeling::ModelConfig config;
  Weights weights;

  explicit RealModel(const char* path, at::ScalarType dtype = at::kFloat)
      : dir(path), config(hexad::modeling::load_model_config(dir)) {
    const hexad::modeling::SafetensorsReader reader(dir);
    for (const auto& info : hexad::modeling::weight_table(config))
      weights[info.hf_name] = reader.tensor(info.hf_name).to(dtype);
  }
  std::vector<float> forward(const std::vector<int32_t>& tokens) const { return full_forward(config, weights, tokens); }
};

// The model's directory, or null after saying that the test was skipped.
const char* model_dir() {
  const char* dir = std::getenv("HEXAD_SMOLLM2_DIR");
  if (!dir) test_report::skipped("HEXAD_SMOLLM2_DIR names no directory with SmolLM2-135M-Instruct");
  return dir;
}

// English prose of this repository, as tokens.
std::vector<int32_t> real_text(const RealModel& model) {
  const char* source = std::getenv("HEXAD_SOURCE_DIR");
  REQUIRE(source);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(source) / "docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const auto tokenizer = hexad::text::Tokenizer::load(model.dir);
  std::vector<int32_t> tokens;
  for (const auto& file : files) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    const auto ids = tokenizer->encode(text.str(), false);
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  return tokens;
}

// Cut into pieces of 120 to 300 tokens, until 10 % more than kTokens come after their prompts; every piece twice, as a
// group with one prompt.
std::vector<ForcedText> pieces_of(const std::vector<int32_t>& tokens, int64_t wanted) {
  std::vector<ForcedText> pieces;
  std::mt19937_64 rng(1);
  int64_t count = 0;
  for (size_t at = 0; count < wanted;) {
    const size_t length = 120 + rng() % 181, prompt = 5 + rng() % 60;
    REQUIRE_MESSAGE(at + 2 * length < tokens.size(), "docs/ has too little text");
    ForcedText first{{tokens.begin() + int64_t(at), tokens.begin() + int64_t(at + length)}, int64_t(prompt), at};
    ForcedText second = first;  // the same prompt, other text after it
    std::copy_n(tokens.begin() + int64_t(at + length), length - prompt, second.tokens.begin() + int64_t(prompt));
    count += 2 * int64_t(length - prompt);
    at += 2 * length;
    pieces.push_back(std::move(first)), pieces.push_back(std::move(second));
  }
  return pieces;
}

double gib(const RealModel& model, int64_t tokens, at::ScalarType dtype) {
  return double(hexad::native::KvCache::bytes_per_block(model.config, 16, dtype)) * (double(tokens) / 16 + 0.5) /
         (1024.0 * 1024.0 * 1024.0);
}

// At least `wanted` tokens sampled after prompts of real text, in groups of 8, in a cache that is too small for all
// that run at once.
Gap gap_of_samples(const RealModel& model, const std::vector<int32_t>& text, const std::string& precision,
                   int64_t wanted) {
  constexpr int64_t kNew = 85, kGroup = 8;
  const auto prompts = uint64_t((wanted / kNew + 2 * kGroup) / kGroup * kGroup);  // some samples end before kNew tokens
  Harness generator(
      {{"model_name", model.dir},
       {"precision", precision},
       {"max_total_sequence_length", 400},
       {"native_cfg",
        {{"kv_cache_gb", gib(model, 47 * int64_t(prompts), precision == "float32" ? at::kFloat : at::kBFloat16)},
         {"max_num_seqs", 64},
         {"max_num_batched_tokens", 77}}}});
  std::vector<Ask> asks;
  for (uint64_t id = 0; id < prompts; ++id) {
    const auto begin = text.begin() + int64_t(400 * (id / kGroup));
    asks.push_back({.id = id,
                    .prompt = {begin, begin + 20 + 7 * int64_t(id / kGroup)},
                    .max_new_tokens = kNew,
                    .group = id / kGroup,
                    .seed = id});
  }
  const auto answers = generator.run(asks);
  CHECK(generator->preemptions() > 0);
  Gap gap;
  for (const Ask& ask : asks) {
    std::vector<int32_t> tokens = ask.prompt;
    const Answer& answer = answers.at(ask.id);
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    const std::vector<float> want = model.forward(tokens);
    for (size_t t = 0; t < answer.tokens.size(); ++t) gap.add(answer.logprobs[t], want[ask.prompt.size() + t]);
  }
  CHECK(gap.count >= wanted);
  return gap;
}

}  // namespace

TEST_CASE("SmolLM2: log-probs of 4,000 tokens of real text, decoded and in chunks, shared and preempted") {
  const char* dir = model_dir();
  if (!dir) return;
  const RealModel model(dir);
  const std::vector<ForcedText> texts = pieces_of(real_text(model), kTokens + kTokens / 5);
  ForcedRun run(hexad::native::make_executor(model.config, {at::kFloat, at::kCPU, false, 512}), model.config,
                at::kFloat, {.block_size = 16, .num_blocks = 160, .max_sequences = 48, .max_tokens = 61});
  run.executor->set_weights(model.weights);
  std::mt19937_64 rng(2);
  run.advance = [&] { return rng() % 40 ? int64_t{1} : int64_t(2 + rng() % 9); };  // mostly one by one
  const auto logprobs = run.run(texts);
  const Gap gap = gap_of(logprobs, texts, [&](const auto& tokens) { return model.forward(tokens); });
  MESSAGE("fp32, real text: " << gap.count << " tokens in " << run.passes << " passes, " << run.preemptions
                              << " preemptions, largest difference " << gap.largest);
  CHECK(run.preemptions > 0);
  CHECK(gap.count >= kTokens);
  CHECK(gap.largest < 1e-4);
}

TEST_CASE("SmolLM2: log-probs of 4,000 tokens of its own samples in fp32, and of 400 in bf16") {
  const char* dir = model_dir();
  if (!dir) return;
  const RealModel model(dir);
  const std::vector<int32_t> text = real_text(model);
  const Gap exact = gap_of_samples(model, text, "float32", kTokens);
  MESSAGE("fp32, own samples: " << exact.count << " tokens, largest difference " << exact.largest);
  CHECK(exact.largest < 1e-4);
  const Gap rounded = gap_of_samples(RealModel(dir, at::kBFloat16), text, "bfloat16", kRoundedTokens);
  MESSAGE("bf16, own samples: " << rounded.count << " tokens, token_mult_prob_error " << rounded.mult_prob_error()
                                << ", largest difference " << rounded.largest);
  CHECK(rounded.mult_prob_error() < 1.02);
}
