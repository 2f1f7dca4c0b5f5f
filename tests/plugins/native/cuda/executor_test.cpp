// The generator on a GPU in bf16: given text and its own samples against the full forward pass, through graphs,
// cascades, preemption and passes in flight.
#include "plugins/native/model/executor.hpp"

#include "tests/plugins/native/cuda/gpu_model.hpp"
#include "tests/plugins/native/support/forced_run.hpp"

using namespace native_test;

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: the CUDA executor gives the full forward's log-probs of given text, decoding and in chunks") {
  for (const std::string& family : families()) {
    for (const int64_t head_dim : {64, 128}) {
      CAPTURE(family);
      CAPTURE(head_dim);
      const GpuModel model(family, head_dim);
      std::vector<ForcedText> texts;
      for (int i = 0; i < 24; ++i) texts.push_back(text_in_group(i, i / 4, 20 + 60 * (i / 4), 20 + i % 7, 997));
      const hexad::native::ExecutorOptions options = gpu_options(12, 150);
      REQUIRE(hexad::native::runs_on_cuda(model.config, options));
      ForcedRun run(hexad::native::make_executor(model.config, options), model.config, at::kBFloat16,
                    gpu_schedule(70, options), kGpu);
      const c10::InferenceMode inference;
      run.executor->set_weights(model.on_gpu());
      run.advance_at_random();
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
