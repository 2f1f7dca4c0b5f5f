#include <doctest/doctest.h>

#include <stdexcept>

#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/protocol/event_stream.hpp"
#include "plugins/vllm_bridge/protocol/generation_api.hpp"
#include "plugins/vllm_bridge/stop_strings.hpp"

using namespace hexad::vllm;

TEST_CASE("events come whole, however the bytes are cut") {
  const std::string stream = ": ping\n\ndata: one\r\n\r\ndata:two\ndata: lines\n\nevent: x\ndata: [DONE]\n\ndata: cut";
  for (size_t step = 1; step <= stream.size(); ++step) {
    EventStream events;
    std::vector<std::string> seen;
    for (size_t at = 0; at < stream.size(); at += step) {
      events.feed(std::string_view(stream).substr(at, step), [&](std::string_view data) {
        seen.emplace_back(data);
        return true;
      });
    }
    CHECK(seen == std::vector<std::string>{"one", "two\nlines", "[DONE]"});
  }
}

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

TEST_CASE("what servers say of an error is found") {
  CHECK(error_text(R"({"error": {"message": "too long", "code": 400}})") == "too long");
  CHECK(error_text(R"({"detail": "Not Found"})") == "Not Found");
  CHECK(error_text("Internal\nServer Error") == "Internal Server Error");
  CHECK(error_text(std::string(1000, 'x')).size() == 303);
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

TEST_CASE("the first stop string counts, however many tokens come at once") {
  const hexad::sdk::Detokenize letters = [](const int32_t* ids, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + ids[i]);
    return text;
  };
  const std::vector<int32_t> tokens = {0, 1, 2, 0, 1, 3};  // abcabd
  CHECK(find_stop(tokens, 0, {"bd", "ca"}, letters) == 4);
  CHECK(find_stop(tokens, 4, {"bd"}, letters) == 6);
  CHECK(find_stop(tokens, 0, {"dd"}, letters) == 0);
  CHECK(find_stop(tokens, 0, {}, letters) == 0);
}

TEST_CASE("a request that goes on draws other numbers") {
  CHECK(seed_at(1, 0) != seed_at(1, 1));
  CHECK(seed_at(1, 0) == seed_at(1, 0));
}
