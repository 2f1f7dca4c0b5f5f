// Servers that are not the run's get no request, and are named with what was wanted.
#include "tests/plugins/openai_bridge/support/harness.hpp"

using namespace openai_test;

namespace {

// What a bridge says of a server that it does not take.
bool is_refused(const FakeOpenai& server, const std::string& why, Json cfg = Json::object(),
                Json section = Json::object()) {
  Harness bridge(server, std::move(cfg), std::move(section));
  const bool said = soon([&] { return LogLines::all().has("is not ready: " + why); }, 500);
  CHECK_MESSAGE(said, "wanted '", why, "' in\n", LogLines::all().text());
  CHECK(!LogLines::all().has("takes requests"));
  CHECK(server.samples().empty());
  return said;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // servers that must answer in time

TEST_CASE("a server of another model, vocabulary or length is named") {
  CHECK(is_refused(FakeOpenai({.model = "other"}),
                   "it serves 'other', wanted 'm': policy.generation.openai_cfg.model is to be the name of its model"));
  CHECK(is_refused(FakeOpenai({.n_vocab = 151936}),
                   "it serves another model: its vocabulary has 151936 tokens, that of policy.model_name 97"));
  CHECK(is_refused(FakeOpenai({.max_model_len = 100}),
                   "it takes 100 tokens, and policy.max_total_sequence_length is 4096: lower that, or start it with as "
                   "many"));
  const LetterModel model;
  CHECK(is_refused(FakeOpenai({.letters = "hgfedcba"}), "its answer to a first request is wrong: its tokens ", {},
                   model.section()));
  CHECK(is_refused(FakeOpenai({.kind = Kind::hosted, .letters = "stuvewxy"}),
                   "its answer to a first request is wrong: ", {}, model.section()));
}

TEST_CASE("a port that answers something else, and a key that is refused, are named") {
  FakeOpenai server;
  server.models(200, "<html>hello</html>");
  CHECK(is_refused(server,
                   "it is no OpenAI-compatible server: /v1/models: got '<html>hello</html>', wanted a list "
                   "`data` of models. policy.generation.openai_cfg.server_urls names it"));
  server.models(400, "what?");
  CHECK(is_refused(server, "it is no OpenAI-compatible server: /v1/models: status 400: what?, wanted a list"));
  server.models(200, R"({"data": 3})");
  CHECK(is_refused(server, "it is no OpenAI-compatible server"));
  CHECK(is_refused(FakeOpenai({.api_key = "secret"}),
                   "it refuses the API key (status 401: Incorrect API key provided). Wanted: the key of the server in "
                   "the variable that policy.generation.openai_cfg.api_key_env_var names"));
  CHECK(!LogLines::all().has("secret"));
}

TEST_CASE("a server without /v1/models is asked all the same, and one that takes no request is named") {
  FakeOpenai server;
  server.models(404, "{}");
  {
    Harness bridge(server);
    Wish wish;
    wish.id = 1;
    check_sample(wish, bridge.run({wish})[1]);
  }
  server.inject_first([](const Connection& to, const Json&, const Json&) {
    return to.reply(400, R"({"error":{"message":"no completions here"}})"), true;
  });
  Harness bridge(server);
  CHECK(soon([&] {
    return LogLines::all().has(
        "it takes no request: /v1/completions: status 400: no completions here. "
        "policy.generation.openai_cfg.prompt is auto, and of texts no tokens can be made: ");
  }));
}

TEST_CASE("a server that gives no log-probs is refused before it gets requests, and taken where none are asked for") {
  FakeOpenai server;
  server.inject_first([](const Connection& to, const Json&, const Json& right) {
    Json answer = right;
    answer["choices"][0]["logprobs"] = nullptr;
    return to.reply(200, answer.dump()), true;
  });
  CHECK(is_refused(server, "its answer to a first request is wrong: it gives no log-probs, although asked for them"));
  Harness bridge(server, {{"logprobs", false}});
  CHECK(bridge.run({Wish{.id = 1}})[1].tokens.size() == 12);
}

TEST_CASE("a run whose only server is another ends after startup_timeout_s with its name") {
  const FakeOpenai server({.model = "other"});
  Harness bridge(server, {{"startup_timeout_s", 1}});
  bridge.submit({Wish{.id = 1}});
  CHECK_THROWS_WITH_AS(bridge.finish(20), doctest::Contains("it serves 'other', wanted 'm'"), hexad::sdk::Error);
}

TEST_CASE("the key of a server is sent, and written nowhere") {
  ::setenv("HEXAD_TEST_OPENAI_KEY", "k-12345", 1);
  const FakeOpenai server({.api_key = "k-12345"});
  Harness bridge(server, {{"api_key_env_var", "HEXAD_TEST_OPENAI_KEY"}});
  Wish wish;
  wish.id = 1;
  check_sample(wish, bridge.run({wish})[1]);
  CHECK(!LogLines::all().has("k-12345"));
  ::unsetenv("HEXAD_TEST_OPENAI_KEY");
}

TEST_SUITE_END();
