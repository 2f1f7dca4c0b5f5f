// Log-probs of the generator against modeling's full forward pass.
#include "tests/modeling/support/devices.hpp"
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/reference.hpp"
#include "tests/plugins/native/support/tight.hpp"

using namespace native_test;

namespace {

std::vector<std::pair<std::string, at::Device>> families_on_devices() {
  std::vector<std::pair<std::string, at::Device>> result;
  for (const at::Device device : hexad::modeling::test_devices()) {
    for (const auto& names : {families(), expert_families()})
      for (const std::string& family : names) result.emplace_back(family, device);
  }
  return result;
}

// Of fp32 beside the full forward on the CPU. A GPU sums in another order and takes exponentials to 2^-21.
double bound_of(at::Device device) { return device.is_cuda() ? 8e-5 : 3e-5; }

// Each token against the full forward with the weights of its version.
void compare(const Ask& ask, const Answer& answer, const TinyModel& model,
             const std::function<const Weights&(int64_t version)>& weights_of, Gap& gap,
             const hexad::modeling::LogprobOptions& options = {}) {
  std::vector<int32_t> tokens = ask.prompt;
  tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
  REQUIRE(answer.logprobs.size() == answer.tokens.size());
  for (size_t i = 0; i < answer.spans.size(); ++i) {
    const auto [start, version] = answer.spans[i];
    const size_t end = i + 1 < answer.spans.size() ? size_t(answer.spans[i + 1].first) : answer.tokens.size();
    const std::vector<float> want = full_forward(model.config, weights_of(version), tokens, options);
    for (size_t t = size_t(start); t < end; ++t) gap.add(answer.logprobs[t], want[ask.prompt.size() + t]);
  }
}

}  // namespace

TEST_CASE("log-probs of samples are those of the full forward pass, for every family") {
  for (const auto& [family, device] : families_on_devices()) {
    CAPTURE(family);
    CAPTURE(device.str());
    const TinyModel model(family);
    Harness generator(tight(model), device);
    const std::vector<Ask> asks = groups_of_samples(8, 4);
    const auto answers = generator.run(asks);
    CHECK(generator->preemptions() > 0);
    Gap gap;
    for (const Ask& ask : asks) {
      const Answer& answer = answers.at(ask.id);
      CHECK(answer.finish == HEXAD_FINISH_LENGTH);
      CHECK(answer.tokens.size() == 24);
      compare(
          ask, answer, model, [&](int64_t) -> const Weights& { return model.weights; }, gap);
    }
    CHECK(gap.count == 32 * 24);
    CHECK(gap.largest < bound_of(device));
  }
}

TEST_CASE("so are they with a temperature, top-k and top-p") {
  const TinyModel model("llama");
  Harness generator(tight(model));
  std::vector<Ask> asks = groups_of_samples(8, 4);
  for (Ask& ask : asks) ask.temperature = 0.7, ask.top_k = 20, ask.top_p = 0.9;
  const auto answers = generator.run(asks);
  Gap gap;
  for (const Ask& ask : asks) {
    compare(ask, answers.at(ask.id), model, [&](int64_t) -> const Weights& { return model.weights; }, gap,
            {.temperature = 0.7, .top_k = 20, .top_p = 0.9});
  }
  CHECK(gap.largest < bound_of(at::kCPU));
}

TEST_CASE("through cancelled samples, sleep, and new weights while samples run") {
  for (const auto& [family, device] : families_on_devices()) {
    CAPTURE(family);
    CAPTURE(device.str());
    const TinyModel model(family);
    const Weights other = random_weights(model.config, 8);
    Harness generator(tight(model), device);
    std::vector<Ask> asks = groups_of_samples(6, 4);
    for (Ask& ask : asks) ask.max_new_tokens = 40;
    generator.submit(asks);
    const auto passes = [&](int count) {
      while (count-- > 0) generator.poll(0);
    };
    passes(9);
    const uint64_t cancelled[] = {1, 20, 999};  // running, waiting, unknown
    generator->cancel(generator.service(), cancelled);
    passes(5);
    generator->sleep(generator.service(), 1);
    passes(2);  // nothing runs
    generator->wake(generator.service());
    passes(20);
    generator.update(other, 5);  // what is in the cache is the old weights': have it computed again
    generator->sleep(generator.service(), 1);
    generator->wake(generator.service());
    passes(20);
    generator->sleep(generator.service(), 2);
    generator->wake(generator.service());
    passes(2);  // nothing can run
    generator.update(model.weights, 6);
    passes(15);
    generator.update(model.weights, 7);  // in place: the same weights, so the cache stays true
    generator.run();

    Gap gap;
    std::map<int64_t, int64_t> tokens_of_version;
    for (const Ask& ask : asks) {
      const Answer& answer = generator.answers.at(ask.id);
      const bool ended = ask.id != 1 && ask.id != 20;
      CHECK(answer.finish == (ended ? HEXAD_FINISH_LENGTH : HEXAD_FINISH_ABORT));
      if (ended) CHECK(answer.tokens.size() == 40);
      compare(
          ask, answer, model, [&](int64_t version) -> const Weights& { return version == 5 ? other : model.weights; },
          gap);
      for (size_t i = 0; i < answer.spans.size(); ++i) ++tokens_of_version[answer.spans[i].second];
    }
    for (const int64_t version : {0, 5, 6, 7}) {
      CAPTURE(version);
      CHECK(tokens_of_version[version] > 2);  // sequences with a span of it
    }
    CHECK(gap.largest < bound_of(device));
  }
}

TEST_CASE("in bf16 and fp16 within their rounding") {
  for (const std::string precision : {"bfloat16", "float16"}) {
    CAPTURE(precision);
    const TinyModel model("qwen3");
    const Weights rounded = in_dtype(model.weights, precision == "bfloat16" ? at::kBFloat16 : at::kHalf);
    Harness generator(tight(model, precision));
    const std::vector<Ask> asks = groups_of_samples(8, 4);
    const auto answers = generator.run(asks);
    CHECK(generator->preemptions() > 0);
    Gap gap;
    for (const Ask& ask : asks) {
      compare(
          ask, answers.at(ask.id), model, [&](int64_t) -> const Weights& { return rounded; }, gap);
    }
    CHECK(gap.mult_prob_error() < 1.02);
  }
}
