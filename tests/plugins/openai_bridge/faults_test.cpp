// What servers may answer in the place of a sample: an error each, or the sample that nothing has disturbed.
#include "tests/plugins/openai_bridge/support/harness.hpp"

using namespace openai_test;

namespace {

using Change = std::function<void(Json& answer)>;

// Of the first request: the right answer, changed.
FakeOpenai::Inject once(const Change& change) {
  return [change, left = std::make_shared<std::atomic<int>>(1)](const Connection& to, const Json&, const Json& right) {
    if (left->fetch_sub(1) <= 0) return false;
    Json answer = right;
    change(answer);
    to.reply(200, answer.dump());
    return true;
  };
}
FakeOpenai::Inject once_raw(int status, const std::string& body) {
  return [=, left = std::make_shared<std::atomic<int>>(1)](const Connection& to, const Json&, const Json&) {
    if (left->fetch_sub(1) <= 0) return false;
    to.reply(status, body);
    return true;
  };
}
FakeOpenai::Inject always(int status, const std::string& body) {
  return [=](const Connection& to, const Json&, const Json&) { return to.reply(status, body), true; };
}

Json& choice(Json& answer) { return answer["choices"][0]; }

struct Case {
  const char* log;
  FakeOpenai::Inject fault;
};

// A wish that ends with an error, and what it says.
std::string error_of(FakeOpenai& server, Json cfg = Json::object()) {
  Harness bridge(server, std::move(cfg));
  Wish wish;
  wish.id = 1;
  const Sample& sample = bridge.run({wish})[1];
  CHECK(sample.finals == 1);
  CHECK(sample.finish == HEXAD_FINISH_ERROR);
  CHECK(sample.tokens.empty());
  return sample.error;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // servers that must answer in time

TEST_CASE("a wrong answer is named, and its request goes on to the sample that nothing has disturbed") {
  const std::vector<Case> cases = {
      {"sent a wrong answer: its answer is not a JSON object: {\"choices\": [{\"text\"",
       once_raw(200, "{\"choices\": [{\"text\"")},
      {"its answer is not a JSON object: <html>", once_raw(200, "<html>")},
      {"has no list `choices` of one sample", once_raw(200, "{}")},
      {"has no list `choices` of one sample", once([](Json& a) { a["choices"].push_back(a["choices"][0]); })},
      {"it answers an error: out of paper", once_raw(200, R"({"error":{"message":"out of paper"}})")},
      {"answered with status 500: Internal Server Error", once_raw(500, "Internal Server Error")},
      {"answered with status 503: busy", once_raw(503, R"({"message":"busy"})")},
      {"stopped for length after 11 of 12 tokens", once([](Json& a) {
         for (const char* list : {"token_ids"}) choice(a)[list].erase(11);
         choice(a)["logprobs"]["tokens"].erase(11), choice(a)["logprobs"]["token_logprobs"].erase(11);
         a["usage"]["completion_tokens"] = 11;
       })},
      {"it has made 12 tokens and tells the ids of 11",
       once([](Json& a) { choice(a)["token_ids"].erase(11), choice(a)["logprobs"]["tokens"].erase(11); })},
      {"13 more tokens, 12 were left of the 12 asked for", once([](Json& a) {
         choice(a)["token_ids"].push_back(7), choice(a)["logprobs"]["tokens"].push_back("token_id:7");
         choice(a)["logprobs"]["token_logprobs"].push_back(-1);
         a["usage"]["completion_tokens"] = 13;
       })},
      {"token_ids and the tokens of its log-probs are not the same",
       once([](Json& a) { choice(a)["token_ids"][3] = 96; })},
      {"token 97, and the model of policy.model_name has 97: is it the server of another model?",
       once([](Json& a) { choice(a)["token_ids"][0] = 97, choice(a)["logprobs"]["tokens"][0] = "token_id:97"; })},
      {"a token is not a number of the vocabulary",
       once([](Json& a) { choice(a)["token_ids"][0] = -1, choice(a)["logprobs"]["tokens"][0] = "token_id:-1"; })},
      {"a log-prob is not a number", once([](Json& a) { choice(a)["logprobs"]["token_logprobs"][2] = nullptr; })},
      {"a log-prob is not a number", once([](Json& a) { choice(a)["logprobs"]["token_logprobs"][2] = "NaN"; })},
      {"a log-prob is not a finite number of at most 0",
       once([](Json& a) { choice(a)["logprobs"]["token_logprobs"][2] = 0.5; })},
      {"its answer is not a JSON object", once_raw(200, R"({"choices":[{"logprobs":{"token_logprobs":[NaN]}}]})")},
      {"it gives no log-probs, although asked for them", once([](Json& a) { choice(a)["logprobs"] = nullptr; })},
      {"it has 12 tokens and 11 log-probs", once([](Json& a) { choice(a)["logprobs"]["token_logprobs"].erase(11); })},
      {"its sample has ended with finish_reason \"content_filter\", wanted stop or length",
       once([](Json& a) { choice(a)["finish_reason"] = "content_filter"; })},
      {"finish_reason null, wanted stop or length", once([](Json& a) { choice(a)["finish_reason"] = nullptr; })},
      {"it has read 2 tokens of a prompt of 3 (usage.prompt_tokens)",
       once([](Json& a) { a["usage"]["prompt_tokens"] = 2; })},
      {"broke off its answer",
       [left = std::make_shared<std::atomic<int>>(1)](const Connection& to, const Json&, const Json&) -> bool {
         if (left->fetch_sub(1) <= 0) return false;
         to.send_all("HTTP/1.1 200 X\r\nContent-Length: 4000\r\n\r\n{\"choices\":");
         throw Gone{};
       }}};
  for (const Case& fault : cases) {
    CAPTURE(fault.log);
    FakeOpenai server;
    server.inject(fault.fault);
    Harness bridge(server);
    Wish wish;
    wish.id = 1;
    check_sample(wish, bridge.run({wish})[1]);
    CHECK_MESSAGE(LogLines::all().has(fault.log), LogLines::all().text());
    CHECK(LogLines::all().has("It goes on with the"));
    CHECK(LogLines::all().has("OpenAI server 0 (" + server.url() + ")"));
  }
}

TEST_CASE("a request that a server refuses ends with status, reason and what helps, in each form of errors") {
  FakeOpenai server;
  server.inject(always(400, R"({"error":{"message":"too long","type":"invalid_request_error"}})"));
  CHECK(error_of(server) == "OpenAI server 0 (" + server.url() +
                                ") refused it with status 400: too long. policy.generation.openai_cfg.prompt and "
                                ".extra_body say how it is asked");
  server.inject(always(422, R"({"object":"error","message":"extra fields not permitted","code":422})"));
  CHECK(error_of(server).find("status 422: extra fields not permitted.") != std::string::npos);
  server.inject(always(401, R"({"error":"invalid key"})"));
  CHECK(
      error_of(server).ends_with("status 401: invalid key. Wanted: its key in the variable that "
                                 "policy.generation.openai_cfg.api_key_env_var names"));
  server.inject(always(404, R"({"detail":"Not Found"})"));
  CHECK(
      error_of(server).ends_with("status 404: Not Found. Wanted: a server with /v1/completions and the model 'm' "
                                 "(policy.generation.openai_cfg.model)"));
  server.inject(always(403, "<html>forbidden</html>"));
  CHECK(error_of(server).find("status 403: <html>forbidden</html>. Wanted: its key") != std::string::npos);
}

TEST_CASE("an answer that is always wrong ends its request after max_attempts, with what was wrong") {
  FakeOpenai server;
  server.inject(always(200, "[]"));
  CHECK(error_of(server, {{"max_attempts", 2}}) ==
        "2 attempts in a row brought no token; the last server sent a wrong answer: its answer is not a JSON object: "
        "[]");
}

TEST_CASE("a body without an end is given up") {
  FakeOpenai server;
  server.inject([&server](const Connection& to, const Json&, const Json&) -> bool {
    to.begin_stream();
    for (const std::string part(size_t{1} << 20, 'x'); !server.stopping();) to.chunk(part);
    throw Gone{};
  });
  CHECK(error_of(server, {{"max_attempts", 1}}) ==
        "1 attempts in a row brought no token; the last server sent a wrong answer: one of more than 16 MiB");
}

TEST_CASE("a server that answers nothing, or byte by byte, is left after stall_timeout_s") {
  for (const bool bytes : {false, true}) {
    FakeOpenai server;
    server.inject([&server, bytes](const Connection& to, const Json&, const Json&) -> bool {
      if (bytes) to.begin_stream();
      while (!server.stopping()) {
        to.pass_time(20);
        if (bytes) to.chunk(" ");
      }
      throw Gone{};
    });
    const std::string error = error_of(server, {{"max_attempts", 1}, {"stall_timeout_s", 0.5}});
    CHECK_MESSAGE(error.find("attempts in a row brought no token") != std::string::npos, error);
  }
}

TEST_CASE("status 429 is waited for as Retry-After says, and no attempt") {
  FakeOpenai server;
  const auto limited = [](int times, const std::string& header) {
    return [=, left = std::make_shared<std::atomic<int>>(times)](const Connection& to, const Json&, const Json&) {
      if (left->fetch_sub(1) <= 0) return false;
      const std::string body = R"({"error":{"message":"slow down ok"}})";
      to.send_all("HTTP/1.1 429 X\r\n" + header + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
      return true;
    };
  };
  server.inject(limited(1, "Retry-After: 1\r\n"));
  Harness bridge(server, {{"max_attempts", 1}});
  Wish wish;
  wish.id = 1;
  const auto begin = std::chrono::steady_clock::now();
  check_sample(wish, bridge.run({wish})[1]);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(950));
  CHECK_MESSAGE(LogLines::all().has("has no room for it (status 429: slow down ok): no requests go there for 1.0 s"),
                LogLines::all().text());
  // Without the header: 0.2 s, twice that ...
  server.inject(limited(3, ""));
  wish.id = 2;
  check_sample(wish, bridge.run({wish})[2]);
  CHECK(LogLines::all().has("no requests go there for 0.2 s"));
  CHECK(LogLines::all().has("no requests go there for 0.8 s"));
  // Longer than a run waits for a server.
  server.inject(limited(1, "Retry-After: 3600\r\n"));
  wish.id = 3;
  const Sample& sample = bridge.run({wish})[3];
  CHECK(sample.finish == HEXAD_FINISH_ERROR);
  CHECK(sample.error == "OpenAI server 0 (" + server.url() +
                            ") has no room for it (status 429: slow down ok) and asks to wait until 3600 s after it "
                            "first had none; policy.generation.openai_cfg.lost_timeout_s is 20. Raise it, or lower "
                            "max_running_requests");
}

TEST_SUITE_END();
