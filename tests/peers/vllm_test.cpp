// The bridge against a real vLLM server, which it starts on this CPU: `make test-peers`. One server serves all cases,
// as each start takes minutes. HEXAD_VLLM_PYTHON: the interpreter of the environment that tools/setup_peers.sh makes.
#include <csignal>
#include <cstdlib>

#include "tests/peers/support/greedy.hpp"
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace peers_test;

namespace {

// Of the server that is started: the one of setup_peers.sh, unless HEXAD_VLLM_VERSION says another.
std::string version() {
  const char* text = std::getenv("HEXAD_VLLM_VERSION");
  return text ? text : "0.24.0";
}

}  // namespace

TEST_CASE("a real vLLM server gives what the native generator does") {
  const Model model;
  vllm_test::Harness bridge(
      vllm_test::Harness::Spawn{{interpreter("HEXAD_VLLM_PYTHON"), "-m", "vllm.entrypoints.openai.api_server"}},
      {{"startup_timeout_s", kStart_s},
       {"stall_timeout_s", 120},
       {"lost_timeout_s", kStart_s},
       {"enforce_eager", true}},
      {{"model_name", model.model.path()}, {"precision", "float32"}, {"max_total_sequence_length", 512}});

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
