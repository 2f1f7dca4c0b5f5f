// Router replay: where a server sent each token comes with the sample.
#include "tests/plugins/server_bridge/support/moe_model.hpp"
#include "tests/plugins/sglang_bridge/support/harness.hpp"

using namespace sglang_test;

namespace {

FakeSglang::Options with_routes() {
  FakeSglang::Options options;
  options.model_type = "qwen3_moe", options.routes = true;
  return options;
}

Json wanting(const MoeModelDir& model) {
  return {{"model_name", model.path().string()}, {"return_routed_experts", true}};
}

}  // namespace

TEST_CASE("samples carry where the server sent each of their tokens, also if it was lost on the way") {
  const MoeModelDir model;
  FakeSglang server(with_routes());
  Harness harness({&server}, Json::object(), wanting(model));
  hexad_generator_info info{};
  harness->describe(harness.service(), info);
  CHECK((info.caps & HEXAD_GEN_ROUTED_EXPERTS) != 0);
  server.inject([left = std::make_shared<std::atomic<int>>(1)](const Json&) {
    return left->fetch_sub(1) > 0 ? Fault{.kind = Fault::reset, .after = 4} : Fault{};
  });
  const Wish wish{.id = 3, .prompt = {1, 2, 3}, .max_new_tokens = 6};
  const Sample sample = harness.run({wish}).at(3);
  check_sample(wish, sample);
  CHECK(server.generations().size() == 2);
  CHECK(server.generations().back().at("return_routed_experts") == true);
  REQUIRE(sample.route_shape == std::vector<int64_t>{9, 2, 2});
  for (int64_t token = 0; token < 9; ++token)
    for (int64_t layer = 0; layer < 2; ++layer)
      for (int64_t slot = 0; slot < 2; ++slot) {
        const int64_t wanted = token == 8 ? -1 : FakeSglang::route_of(token, layer + 1, slot);
        CHECK(sample.routes[static_cast<size_t>((token * 2 + layer) * 2 + slot)] == wanted);
      }
}

TEST_CASE("without router replay nobody asks for it") {
  FakeSglang server(with_routes());
  const MoeModelDir model;
  Harness harness({&server}, Json::object(), {{"model_name", model.path().string()}});
  CHECK(harness.run({{.id = 1}}).at(1).routes.empty());
  CHECK(!server.generations().front().contains("return_routed_experts"));
}

TEST_CASE("a server that does not say where it sends tokens is not of this run") {
  const MoeModelDir model;
  FakeSglang::Options options = with_routes();
  options.routes = false;
  FakeSglang server(options);
  Harness harness({&server}, Json::object(), wanting(model));
  harness.submit({{.id = 1}});
  const char* const part =
      "start it with --enable-return-routed-experts, or set policy.router_replay.source to logprobs";
  CHECK_MESSAGE(soon([&] { return LogLines::all().has(part); }), LogLines::all().text());
  CHECK(server.generations().empty());
}

TEST_CASE("router replay over a dense model is refused at the start") {
  const FakeSglang server;
  std::string error;
  try {
    const Harness harness({&server}, Json::object(), {{"return_routed_experts", true}});
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  CHECK(error.starts_with("router replay: "));
}
