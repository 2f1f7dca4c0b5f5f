// The bridge against a real SGLang server on this CPU: `make test-peers`. HEXAD_SGLANG_PYTHON: the interpreter of the
// environment that tools/setup_peers.sh makes.
#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "plugins/sglang_bridge/generator.hpp"
#include "tests/peers/support/greedy.hpp"
#include "tests/peers/support/sglang_server.hpp"

using namespace peers_test;

namespace {

using Harness = bridge_test::BridgeHarness<hexad::sglang::Generator, SglangServer>;
using Json = nlohmann::ordered_json;

Json section_of(const Model& model) {
  return {{"model_name", model.model.path()}, {"precision", "float32"}, {"max_total_sequence_length", 512}};
}

Json cfg_of(const std::string& pause_mode) {
  return {{"startup_timeout_s", kStart_s},
          {"stall_timeout_s", 120},
          {"lost_timeout_s", kStart_s},
          {"stream_interval", 4},
          {"sglang_server_config", {{"pause_generation_mode", pause_mode}}}};
}

std::vector<Wish> drawn_wishes(uint64_t first_id, int64_t tokens) {
  std::vector<Wish> wishes = greedy_wishes(first_id, tokens);
  for (Wish& wish : wishes) wish.flags = HEXAD_REQUEST_IGNORE_EOS | HEXAD_REQUEST_STREAM, wish.seed = wish.id;
  return wishes;
}

// Streams, at a temperature: ids and log-probs of the distribution drawn from.
template <typename Bridge>
void check_drawn(Bridge& bridge, const Model& model, const Weights& weights, uint64_t first_id) {
  std::vector<Wish> wishes = drawn_wishes(first_id, 24);
  wishes[0].temperature = 0.5, wishes[1].temperature = 1.7;
  bridge.partial.clear();
  auto& samples = bridge.run(wishes, 120);
  CHECK(!bridge.partial.empty());
  for (const Wish& wish : wishes) {
    CHECK(samples[wish.id].tokens.size() == 24);
    CHECK(worst_logprob(model.model, weights, wish, samples[wish.id]) < 2e-3);
  }
}

// A cancelled request ends here, and on the server: one that has none running takes /flush_cache.
void check_abort(Harness& bridge, SglangServer& server, uint64_t id) {
  Wish endless = drawn_wishes(id, 480)[0];
  bridge.partial.clear();
  bridge.submit({endless});
  await_partial(bridge, 1);
  CHECK(!server.ask("POST", "/flush_cache").ok());
  bridge->cancel(bridge.service(), {&id, 1});
  CHECK(bridge.finish(60)[id].finish == HEXAD_FINISH_ABORT);
  CHECK(bridge_test::soon([&] { return server.ask("POST", "/flush_cache").ok(); }));
}

// Samples that are under way while weights change: their spans name both versions, and each token's log-prob is that of
// the weights of its span. `exact`: whether nothing of the cache before stays.
void check_crossing(Harness& bridge, const Model& model, const std::pair<int64_t, Weights>& before,
                    const std::pair<int64_t, Weights>& after, uint64_t first_id, bool exact) {
  const std::vector<Wish> wishes = drawn_wishes(first_id, 400);
  bridge.partial.clear();
  bridge.submit(wishes);
  await_partial(bridge, 8);
  update(bridge, after.second, after.first);
  auto& samples = bridge.finish(300);
  for (const Wish& wish : wishes) {
    CAPTURE(wish.id);
    const Sample& sample = samples[wish.id];
    CHECK(sample.finals == 1);
    CHECK(sample.tokens.size() == 400);
    REQUIRE(sample.spans.size() == 2);
    CHECK(sample.spans[0] == std::pair<int64_t, int64_t>{0, before.first});
    CHECK(sample.spans[1].second == after.first);
    const auto cut = static_cast<size_t>(sample.spans[1].first);
    CHECK(worst_logprob(model.model, before.second, wish, sample, 0, cut) < 2e-3);
    const double rest = worst_logprob(model.model, after.second, wish, sample, cut);
    CHECK((rest < 2e-3) == exact);
  }
}

}  // namespace

TEST_CASE("a real SGLang server, attached: samples, log-probs, and weights that are read back bit for bit") {
  const Model model;
  SglangServer server(model.model.path());
  std::pair<int64_t, Weights> before{0, model.model.weights};
  uint64_t id = 0;
  for (const char* mode : {"retract", "in_place", "abort"}) {
    CAPTURE(mode);
    Harness bridge({&server}, cfg_of(mode), section_of(model));
    if (before.first > 0) update(bridge, before.second, before.first);  // a run begins with an update
    check_greedy(bridge, model, before.second, id += 100, 120);
    check_drawn(bridge, model, before.second, id += 10);
    check_abort(bridge, server, id += 10);

    std::pair<int64_t, Weights> after{before.first + 1,
                                      native_test::random_weights(model.model.config, 99 + before.first)};
    check_crossing(bridge, model, before, after, id += 10, std::string(mode) != "in_place");
    check_weights(server, after.second);
    CHECK(server.version() == std::to_string(after.first));
    // Prompts that are cached under the weights before.
    check_greedy(bridge, model, after.second, id += 10, 120);
    CHECK(bridge.samples[id].spans == std::vector<std::pair<int64_t, int64_t>>{{0, after.first}});
    before = std::move(after);
  }
  CHECK(LogLines::all().has("takes requests: SGLang 0.5.23"));
  CHECK(server.used_its_cache());
}

TEST_CASE("a real SGLang server of the bridge's own is killed, and another one goes on") {
  const Model model;
  Harness bridge(Harness::Spawn{sglang_command()}, cfg_of("retract"), section_of(model));
  check_greedy(bridge, model, model.model.weights, 0, kStart_s);
  const Weights second = native_test::random_weights(model.model.config, 99);
  update(bridge, second, 7);
  check_greedy(bridge, model, second, 40, 120);
  CHECK(bridge.samples[40].spans == std::vector<std::pair<int64_t, int64_t>>{{0, 7}});
  CHECK(bridge.samples[40].tokens != bridge.samples[0].tokens);

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
  CHECK(LogLines::all().has("requests go on elsewhere, or when it is back"));
}
