#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/protocol/generation_api.hpp"

using namespace hexad::vllm;
using Json = nlohmann::ordered_json;

TEST_CASE("wrong events are named") {
  const auto wrong = [](const char* data, const char* part) {
    CHECK_THROWS_WITH_AS(parse_chunk(GenerationApi::tokens, data), doctest::Contains(part), std::runtime_error);
  };
  wrong("{", "is not a JSON object: {");
  wrong("[1]", "is not a JSON object");
  wrong("{\"a\": 1}", "has no choices");
  wrong(R"({"choices": [{"token_ids": 3}]})", "token_ids is not a list");
  wrong(R"({"choices": [{"token_ids": ["a"]}]})", "a token is not a number of the vocabulary");
  wrong(R"({"choices": [{"token_ids": [-1]}]})", "a token is not a number of the vocabulary");
  wrong(R"({"choices": [{"token_ids": [1]}]})", "has 1 tokens and 0 log-probs");
  wrong(R"({"choices": [{"token_ids": [1], "logprobs": {"content": [{"logprob": null}]}}]})", "is not a number");
  wrong(R"({"choices": [{"index": 1}]})", "is of several samples");
  wrong(R"({"choices": [{}, {}]})", "is of several samples");
  CHECK(parse_chunk(GenerationApi::tokens, R"({"choices": [], "usage": {}})").tokens.empty());
  CHECK(parse_chunk(GenerationApi::tokens, "[DONE]").done);
}

TEST_CASE("bodies carry the prompt, and the tokens so far after it") {
  Request request;
  request.prompt = {1, 2147483647};
  const std::vector<int32_t> tokens = {7};
  for (const auto api : {GenerationApi::tokens, GenerationApi::completions}) {
    const auto body = Json::parse(body_of(api, {request, tokens, {}, "a \"name\"", "", true}));
    CHECK(body.at(api == GenerationApi::tokens ? "token_ids" : "prompt") == Json({1, 2147483647, 7}));
    CHECK(body.at("request_id") == "a \"name\"");
  }
}

TEST_CASE("penalties of a model's generation_config.json, which training knows nothing of, are off in every request") {
  Request request;
  request.prompt = {1};
  for (const auto api : {GenerationApi::tokens, GenerationApi::completions}) {
    const auto body = Json::parse(body_of(api, {request, {}, {}, "name", "", true}));
    const Json& sampling = api == GenerationApi::tokens ? body.at("sampling_params") : body;
    CHECK(sampling.at("repetition_penalty") == 1);
    CHECK(sampling.at("presence_penalty") == 0);
    CHECK(sampling.at("frequency_penalty") == 0);
  }
}

// An escape in a key is nothing for the quick reader: the same event, read as a tree.
std::string unusual(const std::string& event) { return R"({"\u0061": 0, )" + event.substr(1); }

bool equal(const Chunk& a, const Chunk& b) {
  return a.tokens == b.tokens && a.logprobs == b.logprobs && a.finish == b.finish && a.done == b.done;
}

const std::pair<GenerationApi, std::string> kEvents[] = {
    {GenerationApi::tokens,
     R"({"request_id":"generate-tokens-1","choices":[{"index":0,"logprobs":{"content":[)"
     R"({"token":"token_id:5","logprob":-0.12345678,"bytes":null,)"
     R"("top_logprobs":[{"token":"token_id:5","logprob":-0.25}]},{"token":"token_id:3","logprob":-1e-05}]},)"
     R"("finish_reason":null,"token_ids":[5,3],"routed_experts":null}],"usage":null})"},
    {GenerationApi::tokens,
     R"({"choices": [{"token_ids": [], "logprobs": {"content": []}, "finish_reason": "stop"}]})"},
    {GenerationApi::completions,
     R"({"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"",)"
     R"("logprobs":{"text_offset":[0],"token_logprobs":[-3.5],"tokens":["token_id:9"],)"
     R"("top_logprobs":[{"token_id:9":-3.5}]},"finish_reason":"length","stop_reason":null,)"
     R"("prompt_token_ids":[1,5],"token_ids":[9]}],"system_fingerprint":"vllm-0.26.0-5fd4cc9b"})"}};

TEST_CASE("the usual events are read without a tree, and say the same") {
  for (const auto& [api, event] : kEvents) {
    const auto quick = read_usual_event(api, event);
    REQUIRE(quick.has_value());
    CHECK(equal(*quick, parse_chunk(api, unusual(event))));
    CHECK(!read_usual_event(api, unusual(event)));
  }
  CHECK(read_usual_event(GenerationApi::tokens, kEvents[0].second)->tokens == std::vector<int32_t>{5, 3});
  CHECK(read_usual_event(GenerationApi::tokens, kEvents[0].second)->logprobs ==
        std::vector<float>{-0.12345678f, -1e-05f});
}

TEST_CASE("what the quick reader takes, a parser takes for the same") {
  std::mt19937 random(7);
  const std::string_view bytes = "{}[],:\"0123456789.-+eEnulltrfasx\\ \n\x01\x80";
  int taken = 0;
  for (int i = 0; i < 60'000; ++i) {
    auto [api, event] = kEvents[random() % std::size(kEvents)];
    for (size_t changes = 1 + random() % 2; changes > 0; --changes) {
      const size_t at = 1 + random() % (event.size() - 1);
      const char byte = bytes[random() % bytes.size()];
      switch (random() % 3) {
        case 0: event[at] = byte; break;
        case 1: event.insert(at, 1, byte); break;
        default: event.erase(at, 1 + random() % 8);
      }
    }
    const auto quick = read_usual_event(api, event);
    if (!quick) continue;
    ++taken;
    CAPTURE(event);
    Chunk tree;
    REQUIRE_NOTHROW(tree = parse_chunk(api, unusual(event)));
    REQUIRE(equal(*quick, tree));
  }
  CHECK(taken > 1000);
}

TEST_CASE("versions are read, and unknown ones are taken for the oldest") {
  CHECK(capabilities_of("0.24.0+cpu").cache_salt);
  CHECK(capabilities_of("v0.30.1rc1").cache_salt);
  CHECK(!capabilities_of("0.10.1").cache_salt);
  CHECK(capabilities_of("0.10.2").cache_salt);
  CHECK(!capabilities_of("main").cache_salt);
  CHECK(!capabilities_of("").cache_salt);
  CHECK(too_old("0.9.1"));
  CHECK(!too_old("0.10.2"));
  CHECK(!too_old("0.33"));
  CHECK(!too_old("dev"));
}
