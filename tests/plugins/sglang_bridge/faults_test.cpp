// Whatever servers do, every sample comes once and is the one that nothing has disturbed.
#include "tests/plugins/sglang_bridge/support/harness.hpp"

using namespace sglang_test;

namespace {

// A fault for the first request that comes.
FakeSglang::Inject once(Fault fault) {
  return [fault, left = std::make_shared<std::atomic<int>>(1)](const Json&) {
    return left->fetch_sub(1) > 0 ? fault : Fault{};
  };
}

struct Case {
  Fault fault;
  const char* log;
};

const Case kCases[] = {
    {{.kind = Fault::reset, .after = 4}, "broke off its answer"},
    {{.kind = Fault::reset, .after = 0}, "broke off its answer"},
    {{.kind = Fault::truncated, .after = 4}, "broke off its answer"},
    {{.kind = Fault::status, .code = 500, .text = "Internal Server Error"},
     "answered with status 500: Internal Server Error"},
    {{.kind = Fault::event, .after = 4, .text = "{\"output_ids\": [}"},
     "sent a wrong answer: an event of the stream is not a JSON object"},
    {{.kind = Fault::event, .after = 4, .text = R"({"error": {"message": "engine broke"}})"},
     "the server ended the stream: engine broke"},
    {{.kind = Fault::other_id, .after = 4}, "sent a wrong answer: log-prob 4 is not of token 7"},
    {{.kind = Fault::nan, .after = 4}, "sent a wrong answer: a log-prob is not a number"},
    {{.kind = Fault::fewer, .after = 4}, "has 0 tokens, and 4 were there before"},
    {{.kind = Fault::changed, .after = 4}, "sent a wrong answer: token 0 of the stream was"},
    {{.kind = Fault::outside, .after = 4}, "token 97, and the model has 97: is it the server of another model?"},
    {{.kind = Fault::too_many, .after = 4}, "9 more tokens, 8 were left of the 12 asked for"},
    {{.kind = Fault::short_spans, .after = 4}, "weight_versions has spans for 1 of"},
    {{.kind = Fault::newer, .after = 4},
     "its weights are called '999', and the newest that this run has given it are '0': does somebody else"},
    {{.kind = Fault::let_go, .after = 4}, "let go of it (abort)"},
    {{.kind = Fault::no_done, .after = 4}, "ended its answer before the stream's last event"},
    {{.kind = Fault::endless, .after = 4}, "an event of the stream is longer than 64 MiB"},
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a sample goes on from its tokens after each kind of failure of an SGLang server") {
  for (const Case& c : kCases) {
    CAPTURE(c.log);
    FakeSglang server;
    Harness bridge({&server}, {{"stream_interval", 2}});
    server.inject(once(c.fault));
    const auto wishes = many(6);
    auto& samples = bridge.run(wishes);
    for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
    CHECK_MESSAGE(LogLines::all().has(c.log), LogLines::all().text());
  }
}

TEST_CASE("weights of an update that has not ended, or not well, are this run's") {
  FakeSglang server;
  Harness bridge({&server}, {{"stream_interval", 2}});
  bridge->update_begin(bridge.service(), 999);
  server.inject(once({.kind = Fault::newer, .after = 4}));
  const Wish wish;
  const Sample during = bridge.run({wish}).at(0);
  bridge->update_end(bridge.service(), /*commit=*/false);
  CHECK(during.finals == 1);
  CHECK(during.tokens.at(4) == 7);
  CHECK(std::ranges::count(during.spans, std::pair<int64_t, int64_t>(4, 999)) == 1);
  CHECK_MESSAGE(!LogLines::all().has("its weights are called '999'"), LogLines::all().text());
}

TEST_CASE("a lost SGLang server loses no sample, nor what it has sent") {
  auto lost = std::make_unique<FakeSglang>(FakeSglang::Options{.token_ms = 4});
  FakeSglang other({.token_ms = 1});
  Harness bridge({lost.get(), &other}, {{"stream_interval", 1}});
  const auto wishes = many(40, 40);
  while (!(LogLines::all().has(lost->url()) && LogLines::all().has(other.url()))) bridge.poll(10);
  bridge.submit(wishes);
  REQUIRE(soon([&] { return bridge.poll(5) + lost->running() >= 4; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  lost.reset();
  auto& samples = bridge.finish();
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  const auto bodies = other.generations();
  CHECK(std::ranges::any_of(bodies, [](const Json& body) { return body.at("input_ids").size() > 4; }));
}

TEST_CASE("a server that hangs is left after its deadline, and told to abort by name") {
  FakeSglang hangs, other;
  hangs.inject([](const Json&) { return Fault{.kind = Fault::hang, .after = 3}; });
  Harness bridge({&hangs, &other}, {{"stall_timeout_s", 1}, {"stream_interval", 1}});
  while (!(LogLines::all().has(hangs.url()) && LogLines::all().has(other.url()))) bridge.poll(10);
  const auto wishes = many(12);
  auto& samples = bridge.run(wishes);
  for (const Wish& wish : wishes) check_sample(wish, samples[wish.id]);
  REQUIRE(!hangs.generations().empty());
  const Json name = hangs.generations().front().at("rid");
  CHECK(soon([&] { return hangs.count("POST /abort_request " + Json{{"rid", name}}.dump()) == 1; }));
}

TEST_CASE("a request that a server refuses ends with what it says, in each of its three forms") {
  const std::pair<const char*, const char*> forms[] = {
      {R"({"error":{"message":"The input (600 tokens) is longer than the context"}})",
       "The input (600 tokens) is longer"},
      {R"({"error":"unknown field `max_tokens`"})", "unknown field `max_tokens`"},
      {R"({"object":"error","message":"1 validation error","code":400})", "1 validation error"}};
  for (const auto& [body, text] : forms) {
    FakeSglang server;
    server.inject(
        [body = std::string(body)](const Json&) { return Fault{.kind = Fault::status, .code = 400, .text = body}; });
    Harness bridge({&server});
    const auto& sample = bridge.run({Wish{}}).at(0);
    CHECK(sample.finish == HEXAD_FINISH_ERROR);
    CHECK_MESSAGE(sample.error.find(std::string("refused it with status 400: ") + text) != std::string::npos,
                  sample.error);
  }
}

TEST_CASE("a token outside of the vocabulary is refused before it is sent") {
  FakeSglang server;
  Harness bridge({&server});
  Wish wish;
  wish.prompt = {1, 97};
  CHECK_THROWS_WITH_AS(bridge.submit({wish}),
                       doctest::Contains("token 97 of the prompt is none of the model's 97 (vocab_size"),
                       hexad::sdk::Error);
  wish.prompt = {1, 96};
  CHECK(bridge->poll(bridge.service(), {}, 0) == 0);
  check_sample(wish, bridge.run({wish}).at(0));
  CHECK(server.generations().size() == 1);
}

TEST_CASE("who is no SGLang server of this run's is named, and gets no request") {
  const auto said = [](const FakeSglang& server, const char* part) {
    Harness bridge({&server});
    bridge.submit({Wish{}});
    CHECK_MESSAGE(soon([&] { return LogLines::all().has(part); }), part, " in ", LogLines::all().text());
    CHECK(server.generations().empty());
  };
  said(FakeSglang({.model_type = "qwen2"}),
       "it serves another model: its model_type is qwen2, that of "
       "policy.model_name is llama");
  said(FakeSglang({.context_length = 512}),
       "it takes 512 tokens, and policy.max_total_sequence_length is 4096: start "
       "it with --context-length 4096");
  said(FakeSglang({.generates = false}), "its model generates nothing (is_generation)");
  said(FakeSglang({.api_key = "secret"}),
       "it refuses the API key (status 401). Wanted: the key of the server in the "
       "variable that policy.generation.sglang_cfg.api_key_env_var names");
  FakeSglang other;
  other.refuse("/model_info", 404, R"({"detail":"Not Found"})");
  said(other, "it is no SGLang server: /model_info: status 404: Not Found");
  FakeSglang text;
  text.refuse("/server_info", 200, "<html>");
  said(text, "it is no SGLang server: /server_info: status 200: <html>");
}

TEST_SUITE_END();
