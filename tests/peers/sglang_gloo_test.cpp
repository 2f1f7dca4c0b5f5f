// Weights by gloo into a real SGLang server, which runs on this CPU, and back: `make test-peers`. HEXAD_SGLANG_PYTHON:
// the interpreter of the environment that tools/setup_peers.sh makes.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "plugins/sglang_bridge/generator.hpp"
#include "tests/peers/support/greedy.hpp"
#include "tests/peers/support/sglang_server.hpp"

using namespace peers_test;

TEST_CASE("a real SGLang server holds every weight that gloo has brought, bit for bit, and draws from them") {
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  const Model model;
  SglangServer server(model.model.path());
  bridge_test::BridgeHarness<hexad::sglang::Generator, SglangServer> bridge(
      {&server}, {{"startup_timeout_s", 600}, {"lost_timeout_s", 600}, {"stall_timeout_s", 120}},
      {{"model_name", model.model.path()},
       {"precision", "float32"},
       {"max_total_sequence_length", 512},
       {"refit_transport", "gloo"}});
  Wish wish{.id = 1, .prompt = native_test::random_prompt(1, 9), .max_new_tokens = 24};
  wish.flags = HEXAD_REQUEST_GREEDY | HEXAD_REQUEST_IGNORE_EOS;
  bridge.run({wish}, 600);
  const auto check = [&](const Weights& weights, int64_t version) {
    check_weights(server, weights);
    wish.id += 1;
    const auto& sample = bridge.run({wish}, 120).at(wish.id);
    CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, version}});
    CHECK(worst_logprob(model.model, weights, wish, sample) < 2e-3);
  };
  const Weights second = native_test::random_weights(model.model.config, 99);
  update(bridge, second, 7);
  check(second, 7);
  const Weights third = native_test::random_weights(model.model.config, 100);
  update(bridge, third, 8, /*each=*/1000);
  check(third, 8);

  // A weight that the model does not have in this shape: the server's words, and the next update is whole again.
  Weights wrong = second;
  const std::string name = "model.norm.weight";
  for (auto& [key, tensor] : wrong)
    if (key == name) tensor = at::ones({3});
  std::string error;
  try {
    update(bridge, wrong, 9);
  } catch (const hexad::sdk::Error& refused) {
    error = refused.what();
  }
  CHECK_MESSAGE(
      error.find("did not take " + name + ": /update_weights_from_distributed: status 400: ") != std::string::npos,
      error);
  update(bridge, second, 10, /*each=*/4);
  check(second, 10);
}
