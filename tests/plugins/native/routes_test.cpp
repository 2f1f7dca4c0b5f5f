// The column routed_experts: where the routers sent each token, through everything that happens to a sequence.
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/reference.hpp"

using namespace native_test;

namespace {

// Small blocks, odd chunks, shared prompts, and a cache that holds a few sequences only.
Json tight(const TinyModel& model) {
  const double block = double(hexad::native::KvCache::bytes_per_block(model.config, 3, at::kFloat));
  return {{"model_name", model.path()},
          {"precision", "float32"},
          {"return_routed_experts", true},
          {"native_cfg",
           {{"kv_block_size", 3},
            {"kv_cache_gb", 60.5 * block / (1024.0 * 1024.0 * 1024.0)},
            {"max_num_seqs", 9},
            {"max_num_batched_tokens", 13}}}};
}

// int16 [tokens, layers with experts, k] of the full forward pass.
at::Tensor full_routes(const TinyModel& model, const std::vector<int32_t>& tokens) {
  const c10::InferenceMode inference;
  namespace m = hexad::modeling;
  const at::Tensor ids = at::tensor(std::vector<int64_t>(tokens.begin(), tokens.end()), at::kLong);
  const m::PackedLayout layout =
      m::packed_layout(at::tensor(std::vector<int64_t>{0, ids.size(0)}, at::kLong), at::kCPU);
  m::PackedAttention attention(model.config, layout);
  std::vector<at::Tensor> chosen;
  m::forward_hidden(
      model.config, [&](const std::string& name) { return model.weights.at(name); }, ids, layout.positions, attention,
      {}, [&](int64_t) { return m::MoeRun{.chosen = [&](const at::Tensor& experts) { chosen.push_back(experts); }}; });
  return at::stack(chosen, 1).to(at::kShort);
}

at::Tensor routes_of(const Answer& answer) {
  return at::tensor(std::vector<int64_t>(answer.routes.begin(), answer.routes.end()), at::kLong)
      .to(at::kShort)
      .view(answer.routes_shape);
}

std::vector<Ask> groups_of_samples(int groups, int samples) {
  std::vector<Ask> asks;
  for (int group = 0; group < groups; ++group) {
    for (int sample = 0; sample < samples; ++sample) {
      const uint64_t id = asks.size();
      asks.push_back({.id = id,
                      .prompt = random_prompt(group, 3 + 11 * group % 37),
                      .max_new_tokens = 24,
                      .group = uint64_t(group),
                      .seed = 1000 + id});
    }
  }
  return asks;
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
    Harness generator(tight(model));
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
  Harness generator(tight(model));
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

  Json silent = tight(model);
  silent.erase("return_routed_experts");
  Harness other(silent);
  CHECK(other.run(groups_of_samples(1, 1)).at(0).routes_shape.empty());
}

TEST_CASE("a preempted sequence keeps the routes of its first run, as it keeps its log-probs") {
  const TinyModel model("qwen3_moe");
  Harness generator(tight(model));
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
