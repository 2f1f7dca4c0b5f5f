// Precision fp8 on a GPU: given text against a forward pass with the same casts, its own samples through graphs and
// cascades, new weights, and sleep.
#include <c10/core/CachingDeviceAllocator.h>

#include "plugins/native/model/executor.hpp"
#include "plugins/native/model/weight_sums.hpp"
#include "tests/plugins/native/cuda/gpu_model.hpp"
#include "tests/plugins/native/support/forced_run.hpp"
#include "tests/plugins/native/support/fp8_forward.hpp"

using namespace native_test;
using namespace hexad::native;

namespace {

constexpr int64_t kWidth = 384;  // a multiple of 64

Json in_fp8(Json section) {
  section["native_cfg"]["precision"] = "fp8";
  return section;
}

ExecutorOptions options_of(int64_t sequences, int64_t rows) {
  ExecutorOptions options = gpu_options(sequences, rows);
  options.fp8 = true;
  return options;
}

// Groups of four samples each; all texts end together: no pass but the last has fewer rows than there are texts.
std::vector<ForcedText> texts_of(int count) {
  std::vector<ForcedText> texts;
  for (int i = 0; i < count; ++i) texts.push_back(text_in_group(i, i / 4, 30 + 45 * (i / 4), 24, 997));
  return texts;
}

std::vector<std::vector<float>> forced(const GpuModel& model, const std::vector<ForcedText>& texts, int64_t rows) {
  const auto sequences = int64_t(texts.size());
  const ExecutorOptions options = options_of(sequences, rows);
  REQUIRE(runs_on_cuda(model.config, options));
  ForcedRun run(make_executor(model.config, options), model.config, at::kBFloat16, gpu_schedule(800, options), kGpu);
  const c10::InferenceMode inference;
  run.executor->set_weights(model.on_gpu());
  return run.run(texts);
}

std::map<uint64_t, Answer> again(Harness& generator, const std::vector<Ask>& asks) {
  generator->flush_cache(generator.service());
  return generator.run(asks);
}

std::map<std::string, int64_t> reported(Harness& generator) {
  std::map<std::string, int64_t> sums;
  generator.context().metric = [&](const hexad::plugin::Metric& metric) {
    sums[metric.name.substr(11)] = static_cast<int64_t>(metric.value);
  };
  hexad_weight_list list{};
  generator->weight_layout(generator.service(), list);
  generator.context().metric = nullptr;
  return sums;
}

double free_bytes() { return double(at::getDeviceAllocator(at::kCUDA)->getMemoryInfo(0).first); }

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: the executor in FP8 gives the log-probs of a forward pass with the same casts") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      for (const bool many : {true, false}) {
        CAPTURE(family);
        CAPTURE(head_dim);
        CAPTURE(many);
        const GpuModel model(family, head_dim, kWidth);
        const std::vector<ForcedText> texts = texts_of(many ? 24 : 5);
        // Passes of more than 16 rows cast what products read; those of fewer do not.
        const auto logprobs = forced(model, texts, many ? 4096 : 16);
        const auto lookup = [&](const std::string& name) { return model.weights.at(name); };
        const Fp8Forward same{model.config, lookup, many ? int64_t{1} << 40 : 0, /*rounds=*/true};
        const Gap gap = gap_of(logprobs, texts, [&](const auto& tokens) { return same.logprobs(tokens, at::kCPU); });
        const Gap plain = gap_of(logprobs, texts,
                                 [&](const auto& tokens) { return full_forward(model.config, model.weights, tokens); });
        MESSAGE(family, " ", head_dim, many ? " many" : " few", ": ", gap.count, " tokens, largest ", gap.largest,
                ", error ", gap.mult_prob_error(), "; without casts ", plain.largest, ", ", plain.mult_prob_error());
        CHECK(gap.count >= int64_t(texts.size()) * 20);
        // With casts, what bf16 rounds off upstream of one now and then decides which value is nearest.
        CHECK(gap.mult_prob_error() - 1 < (many ? 0.7 * (plain.mult_prob_error() - 1) : 0.01));
        CHECK(gap.largest < (many ? plain.largest : 0.15));
      }
    }
  }
}

TEST_CASE("native: samples in FP8 through cascades and graphs, and graphs give what eager passes gave") {
  for (const std::string& family : families()) {
    CAPTURE(family);
    const GpuModel model(family, 128, kWidth);
    Harness generator(in_fp8(model.section(900, 48, 256)), kGpu);
    generator.update(model.weights, 3);
    const std::vector<Ask> asks = groups(6, 8, 150, 60, 997);
    // Of every size the first pass is no graph; the second time all are.
    const auto answers = generator.run(asks), repeated = again(generator, asks);
    CHECK((answers == repeated));
    Gap gap, plain;
    const auto lookup = [&](const std::string& name) { return model.weights.at(name); };
    for (size_t i = 0; i < asks.size(); i += 5) {
      const Answer& answer = answers.at(asks[i].id);
      REQUIRE(answer.error == "");
      CHECK(int64_t(answer.tokens.size()) == asks[i].max_new_tokens);
      std::vector<int32_t> tokens = asks[i].prompt;
      tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
      const std::vector<float> want =
          Fp8Forward{model.config, lookup, int64_t{1} << 40, /*rounds=*/true}.logprobs(tokens, at::kCPU);
      const std::vector<float> without = full_forward(model.config, model.weights, tokens);
      for (size_t t = 0; t < answer.tokens.size(); ++t) {
        gap.add(answer.logprobs[t], want[asks[i].prompt.size() + t]);
        plain.add(answer.logprobs[t], without[asks[i].prompt.size() + t]);
      }
    }
    MESSAGE(family, ": ", gap.count, " tokens, error ", gap.mult_prob_error(), "; without casts ",
            plain.mult_prob_error());
    CHECK(gap.mult_prob_error() - 1 < 0.8 * (plain.mult_prob_error() - 1));
  }
}

TEST_CASE("native: new weights in FP8, beside old ones or after sleep, are those of a fresh generator") {
  const GpuModel model("qwen2", 64, kWidth);
  const Json section = in_fp8(model.section(900, 40, 256));
  const std::vector<Ask> asks = groups(6, 8, 60, 40, 997);
  Weights other;
  for (const auto& [name, weight] : model.weights) other[name] = (weight * 0.9).to(at::kBFloat16).to(at::kFloat);
  Harness fresh(section, kGpu);
  fresh.update(other, 1);
  const auto expected = fresh.run(asks);
  const auto sums = reported(fresh);
  // Those of the cast on a CPU.
  Weights cast;
  for (const auto& [name, weight] : other) {
    cast[name] = weight.to(at::kBFloat16);
    if (!is_fp8_weight(name, weight.sizes())) continue;
    const Fp8Rows rows = empty_fp8_rows(weight.size(0), weight.size(1), at::kCPU);
    to_fp8_rows(cast[name], rows);
    cast[name] = rows.values, cast[scales_name(name)] = rows.scales;
  }
  CHECK(sums == weight_sums(cast));
  Harness generator(section, kGpu);
  generator.update(model.weights, 1);
  const auto before = generator.run(asks);
  const auto tokens_of = [](const std::map<uint64_t, Answer>& answers) {
    std::vector<std::pair<std::vector<int32_t>, std::vector<float>>> result;
    for (const auto& [id, answer] : answers) result.emplace_back(answer.tokens, answer.logprobs);
    return result;
  };
  CHECK((tokens_of(before) != tokens_of(expected)));
  generator.update(other, 2);  // beside those in force
  CHECK((tokens_of(again(generator, asks)) == tokens_of(expected)));
  CHECK(reported(generator) == sums);
  generator.update(model.weights, 3);
  for (const int32_t level : {1, 2}) {
    generator->sleep(generator.service(), level);
    generator->wake(generator.service());
    if (level == 2) CHECK(reported(generator).empty());
    generator.update(other, 4);
    CHECK((tokens_of(again(generator, asks)) == tokens_of(expected)));
    CHECK(reported(generator) == sums);
  }
}

TEST_CASE("native: sleep gives back what weights in FP8 and their passes take") {
  constexpr double kBound = 32 << 20;
  const GpuModel model("llama", 128, 32768);
  const auto bytes = [&](bool fp8) {
    double sum = 0;
    for (const auto& [name, weight] : model.weights)
      sum += double(weight.numel()) * (fp8 && is_fp8_weight(name, weight.sizes()) ? 1 : 2);
    return sum;
  };
  REQUIRE(bytes(false) - bytes(true) > kBound);
  Harness generator(in_fp8(model.section(2000, 40, 2048)), kGpu);
  const std::vector<Ask> asks = groups(2, 8, 60, 20, 997);
  const double before = free_bytes();
  generator.update(model.weights, 1);
  const auto expected = generator.run(asks);
  const double awake = free_bytes();
  // Neither the set in bf16 nor a second one is there: casts of passes are 2048 rows of the widest product.
  MESSAGE("weights and passes take ", (before - awake) / 1048576, " MiB, weights in FP8 are ", bytes(true) / 1048576);
  double asleep[3] = {};
  for (int cycle = 0; cycle < 20; ++cycle) {
    const int32_t level = 1 + cycle % 2;
    generator->sleep(generator.service(), level);
    const double free = free_bytes();
    if (cycle >= 4) CHECK(std::abs(free - asleep[level]) <= kBound);
    asleep[level] = free;
    generator->wake(generator.service());
    if (level == 2) generator.update(model.weights, 1);
    CHECK((again(generator, asks) == expected));
  }
  CHECK(asleep[2] - asleep[1] > bytes(true) - kBound);
  CHECK(asleep[2] - awake > bytes(true));
}

TEST_CASE("native: precision fp8 is refused on a GPU for sizes that its kernels do not take") {
  const GpuModel odd("llama", 64);  // 328 wide
  CHECK(!runs_on_cuda(odd.config, options_of(4, 64)));
  const std::string text =
      refusal(HEXAD_INVALID_ARGUMENT, [&] { Harness generator(in_fp8(odd.section(10, 4, 64)), kGpu); });
  CHECK_MESSAGE(text.starts_with("native_cfg.precision: got 'fp8', wanted float32, bfloat16 or float16 for model_type "
                                 "'llama' on cuda:0: "),
                text);
}

TEST_SUITE_END();
