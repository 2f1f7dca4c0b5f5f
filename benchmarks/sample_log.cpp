// What a step pays for its log of samples, and what the thread beside it does then: nanoseconds and bytes a token.
// usage: sample_log MODEL_DIR [SAMPLES [TOKENS [STEPS]]], of SAMPLES (512) samples of TOKENS (1,024) tokens.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "core/algorithm/grpo/phases.hpp"
#include "core/rollout/model_text.hpp"

using namespace hexad;
namespace fs = std::filesystem;

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

// Log-probs as they are: many near 0, some far below; ids as in text, the frequent ones far more often.
rollout::Rollout random_rollout(const rollout::ModelText& text, const data::SharedDatum& prompt, int64_t samples,
                                int64_t length) {
  std::mt19937 random(1);
  std::exponential_distribution<float> depth(2.0f);
  std::exponential_distribution<double> rank(12.0);
  const auto words = static_cast<double>(text.tokenizer->vocab_size());
  const auto tokens = static_cast<size_t>(samples * length);
  std::vector<int64_t> ids(tokens);
  std::vector<float> mask(tokens, 1), logprobs(tokens), previous(tokens), advantages(tokens);
  for (size_t i = 0; i < tokens; ++i) {
    ids[i] = static_cast<int64_t>(std::min(rank(random), 0.999) * words);
    logprobs[i] = -depth(random), previous[i] = logprobs[i] * 1.001f;
    advantages[i] = static_cast<float>(i / static_cast<size_t>(length) % 7) * 0.3f - 0.9f;
    if (i % static_cast<size_t>(length) < static_cast<size_t>(length) / 8) mask[i] = 0, logprobs[i] = 0;
  }
  rollout::Rollout rollout;
  rollout.batch = data::Batch::of_lengths(std::vector<int64_t>(static_cast<size_t>(samples), length));
  const auto set = [&](const char* name, const auto& values, data::Axis axis) {
    rollout.batch.set(name, data::Tensor::of(values), axis);
  };
  set("input_ids", ids, data::Axis::token), set("token_mask", mask, data::Axis::token);
  set("generation_logprobs", logprobs, data::Axis::token), set("prev_logprobs", previous, data::Axis::token);
  set("advantages", advantages, data::Axis::token);
  const std::vector<float> ones(static_cast<size_t>(samples), 1);
  set("rewards", ones, data::Axis::sample), set("sample_mask", ones, data::Axis::sample);
  const std::vector<uint8_t> none(static_cast<size_t>(samples));
  set("truncated", none, data::Axis::sample), set("invalid", none, data::Axis::sample);
  for (int64_t i = 0; i < samples; ++i) {
    const auto row = rollout.batch.row<int64_t>("input_ids", i);
    const std::vector<int32_t> written(row.begin() + length / 8, row.end());
    rollout.responses.push_back(text.tokenizer->decode(written, true));
    rollout.prompts.push_back(prompt);
  }
  return rollout;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, int64_t otherwise) { return argc > at ? std::stoll(argv[at]) : otherwise; };
  if (argc < 2) return std::fprintf(stderr, "usage: sample_log MODEL_DIR [SAMPLES [TOKENS [STEPS]]]\n"), 2;
  const int64_t samples = number(2, 512), length = number(3, 1024), steps = number(4, 5);
  const rollout::ModelText text = rollout::load_model_text(argv[1], {});
  data::Datum made;
  made.text = "What is 12 + 30?", made.answer = "42";
  const auto prompt = std::make_shared<const data::Datum>(std::move(made));
  const rollout::Rollout rollout = random_rollout(text, prompt, samples, length);
  char folder[] = "/tmp/sample-log-XXXXXX";
  if (!::mkdtemp(folder)) return 1;
  const auto tokens = static_cast<double>(samples * length);
  std::vector<double> step, thread, bytes;
  {
    telemetry::RunLog log(folder, "");
    for (int64_t i = 1; i <= steps; ++i) {
      const double began = seconds(), before = processor_seconds();
      algorithm::log_samples({log, std::nullopt, text.tokenizer, true}, rollout, i, true);
      step.push_back((seconds() - began) / tokens);
      log.end_samples();
      thread.push_back((processor_seconds() - before) / tokens);
    }
    for (const auto& file : fs::directory_iterator(log.directory()))
      if (file.path().filename().string().starts_with("train_data"))
        bytes.push_back(static_cast<double>(file.file_size()) / tokens);
  }
  fs::remove_all(folder);
  const auto median = [](std::vector<double> of) {
    std::ranges::sort(of);
    return of.empty() ? NAN : of[of.size() / 2];
  };
  std::printf("%ld samples of %ld tokens: %.1f ns a token in the step, %.0f ns of processor time in all, %.1f bytes\n",
              samples, length, 1e9 * median(step), 1e9 * median(thread), median(bytes));
}
