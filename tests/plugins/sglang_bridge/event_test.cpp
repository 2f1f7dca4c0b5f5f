// Events of a stream: what is new in each, and what no event may be.
#include "plugins/sglang_bridge/protocol/event.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "plugins/sglang_bridge/protocol/request_body.hpp"

using namespace hexad;
using sglang::read_event;
using Json = nlohmann::ordered_json;

namespace {

// An event with these tokens, the i-th of log-prob -i, and what `meta` adds.
std::string event(const std::vector<int32_t>& tokens, const Json& meta = Json::object()) {
  Json logprobs = Json::array();
  for (size_t i = 0; i < tokens.size(); ++i) logprobs.push_back({-static_cast<double>(i), tokens[i], nullptr});
  Json whole = {{"text", "e\xcc\x81\xf0\x9f\x98\x80"},
                {"output_ids", tokens},
                {"meta_info",
                 {{"finish_reason", nullptr},
                  {"output_token_logprobs", logprobs},
                  {"completion_tokens", tokens.size()},
                  {"weight_version", "3"}}}};
  whole["meta_info"].update(meta);
  return whole.dump();
}

Json span(const char* version, int64_t start, int64_t end) {
  return {{"version", version}, {"start", start}, {"end", end}};
}

std::vector<std::pair<int64_t, int64_t>> spans_in(const bridge::Chunk& chunk) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const hexad_version_span& each : chunk.spans) spans.emplace_back(each.start, each.version);
  return spans;
}

void wrong(const std::string& data, const std::string& part, const std::vector<int32_t>& known = {}) {
  CAPTURE(data);
  CHECK_THROWS_WITH_AS(read_event(data, known), doctest::Contains(part.c_str()), std::runtime_error);
}

using Spans = std::vector<std::pair<int64_t, int64_t>>;

}  // namespace

TEST_CASE("of an event only what is new is passed on") {
  const bridge::Chunk first = read_event(event({5, 6}), {});
  CHECK(first.tokens == std::vector<int32_t>{5, 6});
  CHECK(first.logprobs == std::vector<float>{0, -1});
  CHECK(spans_in(first) == Spans{{0, 3}});
  CHECK(first.finish.empty());
  const std::vector<int32_t> known = {5, 6};
  const bridge::Chunk next = read_event(event({5, 6, 7}), known);
  CHECK(next.tokens == std::vector<int32_t>{7});
  CHECK(next.logprobs == std::vector<float>{-2});
  CHECK(spans_in(next) == Spans{{2, 3}});
  CHECK(read_event(event({5, 6}), known).tokens.empty());
  CHECK(read_event("[DONE]", known).done);
}

TEST_CASE("the last event says how the request ended, and which weights made which token") {
  const std::vector<int32_t> known = {5, 6};
  const std::vector<Json> spans = {span("2", 0, 1), span("3", 1, 3)};
  const bridge::Chunk end = read_event(
      event({5, 6, 7}, {{"finish_reason", {{"type", "stop"}, {"matched", 7}}}, {"weight_versions", spans}}), known);
  CHECK(end.finish == "stop");
  CHECK(spans_in(end) == Spans{{0, 2}, {1, 3}});
  CHECK(read_event(event({}, {{"finish_reason", {{"type", "abort"}}}}), {}).finish == "abort");
  CHECK(read_event(R"({"meta_info": {"finish_reason": {"type": "abort"}}})", known).finish == "abort");
}

TEST_CASE("wrong events are named") {
  wrong("{", "is not a JSON object: {");
  wrong("[1]", "is not a JSON object");
  wrong(event({1}).substr(0, 60), "is not a JSON object");
  wrong(R"({"a": 1})", "has no meta_info");
  wrong(R"({"index": 1, "meta_info": {}})", "is of several samples");
  wrong(R"({"meta_info": {}})", "output_ids is not a list");
  wrong(R"({"meta_info": {}, "output_ids": [1]})", "output_token_logprobs is not a list");
  wrong(R"({"meta_info": {"output_token_logprobs": [[-1, "a", null]]}, "output_ids": ["a"]})",
        "a token is not a number of the vocabulary");
  wrong(R"({"meta_info": {"output_token_logprobs": [[-1, -1, null]]}, "output_ids": [-1]})",
        "a token is not a number of the vocabulary");
  wrong(R"({"meta_info": {"output_token_logprobs": []}, "output_ids": [1]})", "has 1 tokens and 0 log-probs");
  wrong(R"({"meta_info": {"output_token_logprobs": [[-1, 2, null]]}, "output_ids": [1]})",
        "log-prob 0 is not of token 1");
  wrong(R"({"meta_info": {"output_token_logprobs": [[-1]]}, "output_ids": [1]})", "log-prob 0 is not of token 1");
  wrong(R"({"meta_info": {"output_token_logprobs": [[null, 1, null]]}, "output_ids": [1]})", "is not a number");
  wrong(R"({"meta_info": {"output_token_logprobs": [[0.5, 1, null]]}, "output_ids": [1]})",
        "is not a finite number of at most 0");
  wrong(R"({"meta_info": {"output_token_logprobs": [[-1e999, 1, null]]}, "output_ids": [1]})", "is not");
  wrong(event({1}, {{"completion_tokens", 2}}), "has 1 tokens of 2: each is to have all so far");
  wrong(event({1}, {{"finish_reason", "stop"}}), "finish_reason has no type");
  wrong(event({1}), "has 1 tokens, and 2 were there before", {1, 2});
  wrong(event({1, 3}), "token 1 of the stream was 2 and is 3", {1, 2});
}

TEST_CASE("spans of weights that leave a token out, or name weights of somebody else, are wrong") {
  const auto ends_with = [](const std::vector<Json>& spans) {
    return event({1, 2}, {{"finish_reason", {{"type", "stop"}}}, {"weight_versions", spans}});
  };
  wrong(ends_with({span("1", 0, 1)}), "weight_versions has spans for 1 of 2 tokens");
  wrong(ends_with({span("1", 0, 3)}), "weight_versions has spans for 3 of 2 tokens");
  wrong(ends_with({span("1", 1, 2)}), "is from 1 to 2, wanted one from 0");
  wrong(ends_with({span("1", 0, 1), span("2", 0, 2)}), "is from 0 to 2, wanted one from 1");
  wrong(ends_with({span("1", 0, 1), span("2", 1, 0)}), "is from 1 to 0, wanted one from 1");
  CHECK(spans_in(read_event(ends_with({span("1", 0, 2), span("2", 2, 2)}), {})) == Spans{{0, 1}});
  wrong(ends_with({Json{{"start", 0}}}), "has no start, end or version");
  wrong(ends_with({Json{{"start", "a"}, {"end", 1}, {"version", "1"}}}), "is not a whole number");
  wrong(ends_with({span("default", 0, 2)}), "its weights are called 'default'");
  wrong(event({1}, {{"weight_version", "v1"}}), "does somebody else update this server?");
}

TEST_CASE("where a server sent its tokens is base64 of 32-bit numbers") {
  const auto routes = [](const Json& value) { return event({1}, {{"routed_experts", value}}); };
  CHECK(read_event(routes("AQAAAAIBAAA="), {}).routes == std::vector<int32_t>{1, 258});
  CHECK(read_event(routes(nullptr), {}).routes.empty());
  // SGLang 0.5.23 on a CPU, of tests/golden/models/qwen3_moe and the tokens 3 4 5 6 74 91 40: [6 tokens, 2 layers, 2].
  // transformers 5 sends each token to the same two experts.
  const char* const recorded =
      "BwAAAAYAAAAHAAAABAAAAAYAAAACAAAABwAAAAEAAAACAAAAAwAAAAAAAAACAAAA"
      "BAAAAAcAAAAAAAAABgAAAAAAAAADAAAABAAAAAAAAAAAAAAAAgAAAAUAAAAGAAAA";
  CHECK(read_event(routes(recorded), {}).routes ==
        std::vector<int32_t>{7, 6, 7, 4, 6, 2, 7, 1, 2, 3, 0, 2, 4, 7, 0, 6, 0, 3, 4, 0, 0, 2, 5, 6});
  wrong(routes("AQAAAAI="), "routed_experts is no base64 of 32-bit numbers");
  wrong(routes("AQ*A"), "routed_experts is no base64 of 32-bit numbers");
  wrong(routes(7), "routed_experts is not a text");
}

TEST_CASE("each of the three forms of an error is read, in a stream too") {
  wrong(R"({"error": {"message": "too long"}})", "the server ended the stream: too long");
  wrong(R"({"error": "unknown field `max_tokens`"})", "the server ended the stream: unknown field `max_tokens`");
  wrong(event({}, {{"finish_reason", {{"type", "abort"}, {"message", "out of memory"}, {"status_code", 500}}}}),
        "the server ended the request with status 500: out of memory");
}

TEST_CASE("a request carries the prompt, the tokens so far after it, and nothing that generation_config.json decides") {
  bridge::Request request;
  request.prompt = {1, 2147483647};
  request.max_new_tokens = 9;
  const std::vector<int32_t> tokens = {7}, stops = {3};
  const Json body = Json::parse(sglang::request_body({request, tokens, stops, "a \"name\"", "salt", true}, 4));
  CHECK(body.at("input_ids") == Json({1, 2147483647, 7}));
  CHECK(body.at("rid") == "a \"name\"");
  CHECK(body.at("extra_key") == "salt");
  CHECK(body.at("stream") == true);
  CHECK(body.at("return_logprob") == true);
  const Json& sampling = body.at("sampling_params");
  CHECK(!sampling.contains("n"));
  CHECK(sampling.at("max_new_tokens") == 8);
  CHECK(sampling.at("stop_token_ids") == Json({3}));
  CHECK(sampling.at("top_k") == -1);
  CHECK(sampling.at("repetition_penalty") == 1);
  CHECK(sampling.at("presence_penalty") == 0);
  CHECK(sampling.at("frequency_penalty") == 0);
  CHECK(sampling.at("sampling_seed").get<int64_t>() <= INT32_MAX);
  CHECK(sampling.at("stream_interval") == 4);
  const Json plain = Json::parse(sglang::request_body({request, {}, {}, "name", "", false}, 1));
  CHECK(!plain.contains("extra_key"));
  CHECK(!plain.at("sampling_params").contains("stream_interval"));
  CHECK(!plain.at("sampling_params").contains("sampling_seed"));
}

TEST_CASE("servers that do not know stream_interval are not told it") {
  CHECK(sglang::takes_stream_interval("0.5.23"));
  CHECK(sglang::takes_stream_interval("0.6.0.post1"));
  CHECK(!sglang::takes_stream_interval("0.5.22"));
  CHECK(!sglang::takes_stream_interval("0.5.9.post2"));
  CHECK(!sglang::takes_stream_interval("main"));
  CHECK(!sglang::takes_stream_interval(""));
}
