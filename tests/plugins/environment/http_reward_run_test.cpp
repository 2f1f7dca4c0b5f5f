// Whole runs with rewards by a server: what they train, also where libcurl's own calls fail.
#include <doctest/doctest.h>

#include "tests/plugins/environment/fake_server.hpp"
#include "tests/support/toy/program.hpp"

using fake_server::Reply;
using fake_server::Request;
using fake_server::Server;
using plugin_test::contains;
using plugin_test::Json;
using toy::Ended;
using toy::TempDir;

namespace {

// 1 for the answer, as the built-in exact_answer.
Reply exact(const Request& request) {
  const Json body = Json::parse(request.body);
  return {200, Json{{"id", body.at("id")}, {"reward", body.at("response") == body.at("ground_truth")}}.dump()};
}

// broken_curl.c, compiled once.
std::string broken_curl() {
  static const plugin_test::PluginFolder folder;
  static const std::string library =
      folder
          .compile("broken_curl", "-fvisibility=default -ldl",
                   toy::read_text(toy::source_dir() / "tests/plugins/environment/broken_curl.c"))
          .string();
  return library;
}

std::vector<std::string> train(const TempDir& dir, const std::string& url, const std::string& keys) {
  const auto config = dir.write("toy.yaml", toy::config_text(dir.path()));
  return {"train",
          config.string(),
          "grpo.max_num_steps=3",
          "data.train.env_name=judge",
          "+env.judge.plugin=http_reward",
          fmt::format("+env.judge.plugin_config={{url: '{}', {}}}", url, keys)};
}

Ended run(const std::vector<std::string>& arguments, const std::string& broken = "") {
  std::vector<std::string> command = {"env", "no_proxy=127.0.0.1"};
  if (!broken.empty()) command.insert(command.end(), {"LD_PRELOAD=" + broken_curl(), "HEXAD_BROKEN_CURL=" + broken});
  command.push_back(toy::hexad().string());
  return toy::Program(command, arguments, "").wait();
}

std::string weights(const TempDir& dir) { return toy::read_text(dir / "checkpoints/step_3/policy/weights/toy.bin"); }

Json metrics(const TempDir& dir) {
  std::ifstream in(dir / "logs/exp_001/metrics.jsonl");
  std::string line;
  std::getline(in, line);
  return Json::parse(line);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("http_reward: a server's rewards train as the built-in's do, whatever libcurl's calls return") {
  const TempDir built_in, plain, failing;
  const auto config = built_in.write("toy.yaml", toy::config_text(built_in.path()));
  REQUIRE(toy::run({"train", config.string(), "grpo.max_num_steps=3", "env.exact_answer={ignore_case: false}"}).code ==
          0);
  const Server server([](const Request& request, int) { return exact(request); });
  const Ended well = run(train(plain, server.url(), "batch_size: 1"));
  REQUIRE_MESSAGE(well.code == 0, well.err);
  CHECK(weights(plain) != "");
  CHECK(weights(plain) == weights(built_in));
  CHECK_FALSE(metrics(plain).contains("train/num_reward_failures"));

  const Ended ill = run(train(failing, server.url(), "backoff_s: 0.01, retries: 20"), "sometimes");
  REQUIRE_MESSAGE(ill.code == 0, ill.err);
  CHECK(weights(failing) == weights(built_in));
  CHECK(metrics(failing).at("train/num_reward_failures") > 10);
  CHECK_FALSE(metrics(failing).contains("train/num_invalid_samples"));
  CHECK_MESSAGE(contains(ill.err, "cannot be asked: Out of memory (attempt 1 of 21)"), ill.err);
}

TEST_CASE("http_reward: a sample that the server fails is invalid and counted, and no reward of 0") {
  const Server server([](const Request& request, int) {
    return Json::parse(request.body).at("id").get<int>() % 4 == 0 ? Reply{500, "sandbox down"} : exact(request);
  });
  const TempDir dir;
  const Ended ended = run(train(dir, server.url(), "backoff_s: 0.01, retries: 1"));
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  CHECK(metrics(dir).at("train/num_invalid_samples") == 16);  // of 64
  CHECK(metrics(dir).at("train/global_valid_seqs") == 48);
  CHECK(metrics(dir).at("train/num_reward_failures") == 32);
  CHECK_MESSAGE(contains(ended.err, "answered HTTP 500: 'sandbox down' (attempt 1 of 2)"), ended.err);
}

TEST_CASE("http_reward: a libcurl that never does anything ends the step within the deadlines") {
  const Server server([](const Request& request, int) { return exact(request); });
  const TempDir dir;
  const Ended ended =
      run(train(dir, server.url(), "timeout_s: 0.5, retries: 1, backoff_s: 0.01, deadline_s: 2"), "never");
  CHECK(ended.code == 4);
  CHECK_MESSAGE(contains(ended.err, "did not answer within 0.5 s (attempt 1 of 2)"), ended.err);
  CHECK_MESSAGE(contains(ended.err, "not one of the 64 samples of step 1 could be scored"), ended.err);
  CHECK(ended.seconds < 100);
}

TEST_CASE("http_reward: deadlines hold while the name of the server cannot be resolved") {
  const TempDir dir;
  const Ended ended = run(train(dir, "http://judge.test:1/", "timeout_s: 1, retries: 0, deadline_s: 2"), "unresolved");
  CHECK(ended.code == 4);
  CHECK_MESSAGE(contains(ended.err, "did not answer within 1 s (attempt 1 of 1)"), ended.err);
  CHECK_MESSAGE(contains(ended.err, "not one of the 64 samples of step 1 could be scored"), ended.err);
  CHECK(ended.seconds < 200);
}

TEST_SUITE_END();
