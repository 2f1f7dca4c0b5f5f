// The column routed_experts: where the routers sent each token, through everything that happens to a sequence.
#include "tests/plugins/native/support/reference.hpp"
#include "tests/plugins/native/support/tight.hpp"

using namespace native_test;

namespace {

Json with_routes(const TinyModel& model) {
  Json section = tight(model);
  section["return_routed_experts"] = true;
  return section;
}

// int16 [tokens, layers with experts, k] of the full forward pass.
at::Tensor full_routes(const TinyModel& model, const std::vector<int32_t>& tokens) {
  const c10::InferenceMode inference;
  std::vector<at::Tensor> chosen;
  full_hidden(model.config, model.weights, tokens, [&](int64_t) {
    return hexad::modeling::MoeRun{.chosen = [&](const at::Tensor& experts) { chosen.push_back(experts); }};
  });
  return at::stack(chosen, 1).to(at::kShort);
}

at::Tensor routes_of(const Answer& answer) {
  return at::tensor(std::vector<int64_t>(answer.routes.begin(), answer.routes.end()), at::kLong)
      .to(at::kShort)
      .view(answer.routes_shape);
}

// All tokens but the last, which was never run.
void check_routes(const TinyModel& model, const Ask& ask, const Answer& answer) {
  std::vector<int32_t> tokens = ask.prompt;
  tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
  const at::Tensor want = full_routes(model, tokens);
  REQUIRE(answer.routes_shape == want.sizes().vec());
  const at::Tensor got = routes_of(answer);
  const int64_t run = want.size(0) - 1;
  CHECK(at::equal(got.slice(0, 0, run), want.slice(0, 0, run)));
  CHECK(got.slice(0, run).eq(-1).all().item<bool>());
}

}  // namespace

TEST_CASE("routes are those of the full forward pass: shared prompts, chunks, preemption, sleep") {
  for (const std::string& family : expert_families()) {
    CAPTURE(family);
    const TinyModel model(family);
    Harness generator(with_routes(model));
    const std::vector<Ask> asks = groups_of_samples(8, 4);
    generator.submit(asks);
    for (int pass = 0; pass < 20; ++pass) generator.poll(0);
    generator->sleep(generator.service(), 1);
    generator->wake(generator.service());
    const auto& answers = generator.run();
    CHECK(generator->preemptions() > 0);
    for (const Ask& ask : asks) check_routes(model, ask, answers.at(ask.id));
  }
}

TEST_CASE("a cancelled sequence has the routes of what was run; an unasked one none") {
  const TinyModel model("mixtral");
  Harness generator(with_routes(model));
  std::vector<Ask> asks = groups_of_samples(2, 1);
  asks[0].max_new_tokens = 100;
  generator.submit(asks);
  for (int pass = 0; pass < 9; ++pass) generator.poll(0);
  const uint64_t cancelled[] = {0};
  generator->cancel(generator.service(), cancelled);
  generator.run();
  const Answer& stopped = generator.answers.at(0);
  CHECK(stopped.finish == HEXAD_FINISH_ABORT);
  CHECK(stopped.tokens.size() > 2);
  check_routes(model, asks[0], stopped);

  Harness other(tight(model));
  CHECK(other.run(groups_of_samples(1, 1)).at(0).routes_shape.empty());
}

TEST_CASE("a preempted sequence keeps the routes of its first run, as it keeps its log-probs") {
  const TinyModel model("qwen3_moe");
  Harness generator(with_routes(model));
  const std::vector<Ask> asks = {{.id = 0, .prompt = random_prompt(3, 12), .max_new_tokens = 9, .seed = 5}};
  generator.submit(asks);
  for (int pass = 0; pass < 4; ++pass) generator.poll(0);
  generator->sleep(generator.service(), 1);
  generator.update(random_weights(model.config, 8), 5);
  generator->wake(generator.service());
  const Answer& answer = generator.run().at(0);
  const at::Tensor got = routes_of(answer), want = full_routes(model, asks[0].prompt);
  CHECK(at::equal(got.slice(0, 0, want.size(0)), want));
  CHECK(answer.spans.back().second == 5);
}
