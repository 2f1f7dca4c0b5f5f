// Everything that a real server has answered, sent again by one that replays it: the bridge understands each.
#include <doctest/doctest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lib/http/client/error_text.hpp"
#include "lib/http/client/event_stream.hpp"
#include "plugins/sglang_bridge/dialect.hpp"
#include "plugins/sglang_bridge/protocol/event.hpp"
#include "plugins/sglang_bridge/protocol/probes.hpp"
#include "tests/support/fake_http.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::http::client;
using Json = nlohmann::ordered_json;

namespace {

// Answers every request with what was recorded for it.
class Replay {
 public:
  // The answer over HTTP, as the bridge gets it.
  Answer ask(const std::string& method, const std::string& path, const Json& recorded, const std::string& body) {
    recorded_ = recorded;
    std::promise<Answer> came;
    loop_.run([&] {
      HttpRequest request;
      request.method = method, request.url = url_ + path, request.body = body;
      request.timeout = Milliseconds(20'000);
      http::client::ask(transfers_, std::move(request), [&](const Answer& answer) { came.set_value(answer); });
    });
    return came.get_future().get();
  }

 private:
  void handle(const fake_http::Connection& connection) const {
    const int status = recorded_.value("status", 200);
    if (!recorded_.contains("events")) {
      const Json body = recorded_.value("body", Json());
      return connection.reply(status, recorded_.contains("text")   ? recorded_.at("text").get<std::string>()
                                      : recorded_.contains("body") ? body.dump()
                                                                   : "");
    }
    connection.begin_stream(status);
    for (const Json& event : recorded_.at("events"))
      connection.chunk("data: " + (event.is_string() ? event.get<std::string>() : event.dump()) + "\n\n");
    connection.chunk("");
  }

  Json recorded_;
  fake_http::HttpListener listener_{
      0, [this](const fake_http::Connection& connection, const fake_http::HttpMessage&) { handle(connection); }};
  std::string url_ = "http://127.0.0.1:" + std::to_string(listener_.port());
  EventLoop loop_;
  Transfers transfers_{loop_};
  StopsLoop before_transfers_{loop_};
};

// The recording's names of weights, as the bridge would have named them.
Json numbered(Json body) {
  const auto number = [](Json& name) {
    if (name.is_string()) name = name == "default" ? "0" : name.get<std::string>().substr(1);
  };
  if (!body.is_object() || !body.contains("meta_info")) return body;
  Json& meta = body["meta_info"];
  if (meta.contains("weight_version")) number(meta["weight_version"]);
  for (Json& span : meta.contains("weight_versions") ? meta["weight_versions"] : meta["none"]) number(span["version"]);
  return body;
}

// A generation as its last event: tokens, log-probs, end and versions are those that were recorded.
void check_generation(const Json& body) {
  const Json& meta = body.at("meta_info");
  const std::string data = numbered(body).dump();
  if (!meta.contains("output_token_logprobs")) {  // the bridge asks for them always
    CHECK_THROWS_WITH_AS(sglang::read_event(data, {}), doctest::Contains("output_token_logprobs is not a list"),
                         std::runtime_error);
    return;
  }
  const bridge::Chunk chunk = sglang::read_event(data, {});
  CHECK(Json(chunk.tokens) == body.at("output_ids"));
  CHECK(chunk.finish == meta.at("finish_reason").at("type").get<std::string>());
  REQUIRE(chunk.logprobs.size() == chunk.tokens.size());
  for (size_t i = 0; i < chunk.logprobs.size(); ++i)
    CHECK(chunk.logprobs[i] == meta.at("output_token_logprobs")[i][0].get<float>());
  CHECK(chunk.spans.size() == (chunk.tokens.empty() ? 0 : meta.at("weight_versions").size()));
}

// A stream, event by event: nothing comes twice.
void check_stream(const std::string& bytes, const Json& events) {
  EventStream stream;
  std::vector<int32_t> known;
  bool done = false;
  stream.feed(bytes, [&](std::string_view data) {
    const Json event = Json::parse(data, nullptr, /*allow_exceptions=*/false);
    const bridge::Chunk chunk =
        sglang::read_event(event.is_object() ? numbered(event).dump() : std::string(data), known);
    known.insert(known.end(), chunk.tokens.begin(), chunk.tokens.end());
    done |= chunk.done;
    return true;
  });
  CHECK(done);
  CHECK(Json(known) == events.at(events.size() - 2).at("output_ids"));
}

// What the server says of an error, in whichever of its forms.
std::string message_of(const Json& recorded) {
  if (recorded.contains("text")) return recorded.at("text").get<std::string>();
  const Json& body = recorded.at("body");
  if (body.contains("detail")) return body.at("detail").get<std::string>();
  if (body.contains("message")) return body.at("message").get<std::string>();
  return body.at("error").is_string() ? body.at("error").get<std::string>()
                                      : body.at("error").at("message").get<std::string>();
}

bridge::Facts facts(bool salts) {
  bridge::Facts made;
  made.salts = salts;
  return made;
}

// A request that was disturbed: what came of it is put together from the recording's summary.
void check_disturbed(const sglang::Dialect& dialect, const Json& expected) {
  for (const Json& answer : expected.at("answers")) {
    Answer got{.result = {.complete = true, .status = answer.at(1).get<long>(), .error = {}},
               .body = answer.at(2).is_string() ? answer.at(2).get<std::string>() : answer.at(2).dump()};
    if (answer.at(0) != "/flush_cache") {
      CHECK(got.ok());
      continue;
    }
    CHECK(dialect.flushed(facts(false), got) == got.ok());  // refused in place: old keys would be served
    CHECK(dialect.flushed(facts(true), got));               // and are not with another salt
  }
  const Json& generation = expected.at("generation");
  const std::vector<int32_t> tokens = {5, 6, 7, 8};
  const auto count = static_cast<int64_t>(generation.at("versions").size());
  Json spans = Json::array(), logprobs = Json::array();
  for (int64_t i = 0; i < count; ++i) {
    const Json& version = generation.at("versions")[static_cast<size_t>(i)];
    spans.push_back(Json{{"version", version}, {"start", i}, {"end", i + 1}});
  }
  spans.back()["end"] = tokens.size();
  for (const int32_t token : tokens) logprobs.push_back({-1.0, token, nullptr});
  const Json event = {{"output_ids", tokens},
                      {"meta_info",
                       {{"finish_reason", generation.at("finish_reason")},
                        {"output_token_logprobs", logprobs},
                        {"weight_versions", spans}}}};
  const bridge::Chunk chunk = sglang::read_event(numbered(event).dump(), {});
  CHECK(chunk.finish == generation.at("finish_reason").at("type").get<std::string>());
  CHECK((chunk.finish == "abort") != generation.at("all_tokens").get<bool>());
  CHECK(chunk.spans.size() == generation.at("versions").size());
}

void check_probe(const std::string& path, const Json& recorded, const Answer& answer) {
  for (const bridge::Probe& probe : sglang::probes()) {
    if (path != probe.path) continue;
    Answer whole = answer;
    if (recorded.contains("some_keys")) whole.body = Json{{"version", "0.5.23"}, {"context_length", 512}}.dump();
    Json body = Json::parse(whole.body, nullptr, /*allow_exceptions=*/false);
    if (path == "/model_info") {  // some of the recorded answers are cut
      body["is_generation"] = true;
      whole.body = body.dump();
    }
    bridge::Facts said;
    CHECK(probe.read(whole, said).kind == bridge::Verdict::next);
    if (path == "/model_info") CHECK(said.weight_version == body.at("weight_version").get<std::string>());
    if (path == "/server_info") CHECK(said.max_length == 512);
  }
}

}  // namespace

TEST_SUITE_BEGIN("golden");

TEST_CASE("every recorded answer of a real SGLang server is understood") {
  Replay replay;
  const sglang::Dialect dialect({});
  size_t cases = 0;
  golden::for_each_case("sglang_http", [&](const Json& test_case) {
    ++cases;
    const Json& expected = test_case.at("expected");
    const std::string name = test_case.at("name").get<std::string>();
    if (name.starts_with("control/during/")) return check_disturbed(dialect, expected);
    const Json body = test_case.at("inputs").value("body", Json());
    const std::string path = test_case.at("config").at("path").get<std::string>();
    const Answer answer = replay.ask(test_case.at("config").at("method").get<std::string>(), path, expected,
                                     body.is_string() ? body.get<std::string>() : body.dump());
    REQUIRE(answer.result.complete);
    CHECK(answer.result.status == expected.at("status").get<long>());
    if (answer.result.status != 200) {
      CHECK(answer.trouble() == "status " + std::to_string(answer.result.status) + ": " + shown(message_of(expected)));
      CHECK(answer.failed() == (answer.result.status >= 500));
      return;
    }
    CHECK(answer.ok());
    if (path == "/flush_cache") CHECK(dialect.flushed(facts(false), answer));
    check_probe(path, expected, answer);
    if (path != "/generate") return;
    if (expected.contains("events")) return check_stream(answer.body, expected.at("events"));
    const Json got = Json::parse(answer.body);
    if (got.is_object()) return check_generation(got);
    // Several samples of one request: the bridge asks for one at a time, and each reads as one.
    CHECK_THROWS_WITH_AS(sglang::read_event(answer.body, {}), doctest::Contains("is not a JSON object"),
                         std::runtime_error);
    for (const Json& each : got) check_generation(each);
  });
  MESSAGE(cases << " exchanges");
  CHECK(cases > 0);
}

TEST_SUITE_END();
