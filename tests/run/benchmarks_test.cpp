// The benchmarks of whole runs, on a CPU with a tiny model: what they check holds, and they say what they measured.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "benchmarks/bridge_overhead/outcome.hpp"
#include "tests/run/first_party.hpp"

using Json = nlohmann::json;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("grpo_step measures whole steps of the lengths that it imposes") {
  const toy::TempDir dir;
  const std::string out = (dir / "result.json").string(), log = (dir / "log").string();
  const std::string command = fmt::format(
      "python3 -B {}/benchmarks/grpo_step.py --build {} --out {} --model tiny --device cpu --gpus 2 --prompts 2 "
      "--samples 4 --steps 2 --longest 64 --mean-response 12 --prompt-tokens 5,9 --micro-batch 256 --kv-gb 0.01 "
      "--precision float32 --timeout 240 > {} 2>&1",
      first_party::source(), std::getenv("HEXAD_BUILD_DIR"), out, log);
  const int code = std::system(command.c_str());
  INFO(toy::read_text(log));
  REQUIRE(code == 0);
  const Json result = Json::parse(toy::read_text(out));
  CHECK(result.at("checks").at("ok").get<bool>());
  CHECK(result.at("steps").size() == 2);
  for (const Json& step : result.at("steps")) {
    CHECK(step.at("token_mult_prob_error").get<double>() < 1.001);
    CHECK(step.at("timing").contains("policy_training"));
    const double seconds = step.at("total_step_time");
    CHECK(step.at("gpu_seconds_per_sample").get<double>() == doctest::Approx(seconds * 2 / 8));
  }
}

TEST_CASE("the table holds results against marks of the same run, or better ones, and its picture shows them") {
  const toy::TempDir dir;
  std::ofstream(dir / "rollouts-8b.json")
      << R"({"ok": true, "peer": {"a": {"out_tok_s": 14400}, "d": {"tok_s_per_seq": 190}},
    "ours": {"a": {"out_tok_s": 22000}, "d": {"tok_s_per_seq": 200}, "engine": {"start_to_first_token_s": 2.5}}})";
  std::ofstream(dir / "refit-8b.json") << R"({"refit_s": 0.25, "run": {"ok": true}})";
  const std::string out = dir.path().string(), log = (dir / "log").string(), source = first_party::source();
  const auto table = [&] {
    return std::system(fmt::format("python3 -B {0}/benchmarks/table.py --read --out {1} > {2} 2>&1 && "
                                   "python3 -B {0}/benchmarks/table_svg.py {1}/summary.json {1}/table.svg >> {2} 2>&1",
                                   source, out, log)
                           .c_str());
  };
  const int code = table();
  INFO(toy::read_text(log));
  REQUIRE(code == 0);
  const Json lines = Json::parse(toy::read_text(dir / "summary.json"));
  REQUIRE(lines.size() == 4);
  const std::vector<bool> reached = {lines[0]["reached"], lines[1]["reached"], lines[2]["reached"],
                                     lines[3]["reached"]};
  CHECK(reached == std::vector<bool>{true, false, true, false});
  CHECK(lines[0]["target"] == 21600);
  CHECK(lines[0]["same_run"] == true);
  CHECK(lines[1]["mark"] == 191);  // the peer ran slower this time
  CHECK(lines[1]["same_run"] == false);
  CHECK(lines[3]["mark"] == 5);
  CHECK(toy::read_text(dir / "table.svg").find("22,000") != std::string::npos);
  std::ofstream(dir / "refit-8b.json") << R"({"refit_s": 0.05, "run": {"ok": false}})";
  CHECK(table() != 0);
}

TEST_CASE("async_gain accounts for the groups of an asynchronous run beside the synchronous one") {
  const toy::TempDir dir;
  const std::string out = (dir / "result.json").string(), log = (dir / "log").string();
  const std::string command = fmt::format(
      "cd {0} && python3 -B benchmarks/async_gain.py --build {1} --out {2} --steps 6 --seeds 42 --ages 1 --running 64 "
      "> {3} 2>&1",
      first_party::source(), std::getenv("HEXAD_BUILD_DIR"), out, log);
  [[maybe_unused]] const int code = std::system(command.c_str());  // six steps need not reach the reward
  INFO(toy::read_text(log));
  const Json result = Json::parse(toy::read_text(out)), run = result.at("runs").at(0);
  CHECK(run.at("groups") == Json{6 * 32, 6 * 32, 0});
  CHECK(run.at("avg_trajectory_age").get<double>() > 0.5);
  CHECK(run.at("all_steps_ratio").get<double>() > 0);
  CHECK(result.at("phases").at("42").at(0).get<double>() > 0);
}

TEST_CASE("bridge_overhead measures three arms, and many requests at once") {
  const toy::TempDir dir;
  const std::string out = (dir / "result.json").string(), log = (dir / "log").string();
  const std::string build = std::getenv("HEXAD_BUILD_DIR");
  const std::string command = fmt::format(
      "{0}/bin/bridge_overhead --plugins {0}/lib/hexad/plugins --out {1} --concurrency 2,256 --rounds 2 --flight 300 "
      "--prompt-tokens 9 --new-tokens 4 --pace-ms 5 --whole-requests 64 > {2} 2>&1",
      build, out, log);
  const int code = std::system(command.c_str());
  INFO(toy::read_text(log));
  REQUIRE(code == 0);
  const Json result = Json::parse(toy::read_text(out));
  CHECK(result.at("ok") == true);
  CHECK(result.at("wrong").empty());
  REQUIRE(result.at("rows").size() == 4);
  for (const Json& row : result.at("rows")) {
    CAPTURE(row.dump());
    for (const char* arm : {"bridge", "bare", "bare_sse"}) {
      CHECK(row.at(arm).at("wall_ms").at("least") > 0);
      CHECK(row.at(arm).at("cpu_us").at("least") > 0);
      if (row.at("answers") == "streamed") CHECK(row.at(arm).at("latency_ms").at("least") > 3 * 5);
    }
    const Json& added = row.at("added_over_bare").at("cpu_us");
    CHECK(added.at("least") <= added.at("median"));
    CHECK(added.at("median") <= added.at("most"));
  }
  CHECK(result.at("target").at("streamed").at("limit_ms") == 1);
  REQUIRE(result.at("flight").size() == 2);
  for (const Json& flight : result.at("flight")) {
    CHECK(flight.at("most_open_files") > 300);
    CHECK(flight.at("peak_rss_mib") > flight.at("rss_before_mib"));
    CHECK(flight.at("wall_s") > flight.at("all_at_server_s"));
  }
}

TEST_CASE("bridge_overhead sees what is lost, doubled or changed") {
  using namespace hexad::bridge_overhead;
  const Load load{10, 3, 1, {4, 2}};
  Tally tally(load);
  for (uint64_t index = 10; index < 13; ++index) tally.begin(index);
  tally.end(10), tally.end(10), tally.end(13), tally.end(11, "is cut");
  const std::vector<std::string> wanted = {"request 10 is answered twice",
                                           "an answer to request 13, which was not made", "request 11: is cut",
                                           "2 of 3 requests have ended"};
  CHECK(tally.finish().wrong == wanted);
  std::vector<int32_t> tokens = {token_at(10, 0), token_at(10, 1)};
  std::vector<float> logprobs = {logprob_at(10, 0), logprob_at(10, 1)};
  const auto different = [&] { return difference(10, tokens.data(), logprobs.data(), 2, load.shape); };
  CHECK(different().empty());
  CHECK(difference(10, tokens.data(), logprobs.data(), 1, load.shape) == "1 tokens, wanted 2");
  logprobs[1] = std::nextafter(logprobs[1], 0.0f);
  CHECK(different() == "log-prob 1 is not what was sent");
  tokens[0] ^= 1;
  CHECK(different() == "token 0 is not what was sent");
}

TEST_SUITE_END();
