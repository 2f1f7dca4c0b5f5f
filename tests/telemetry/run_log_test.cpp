// What a run leaves on disk.
#include "core/telemetry/run_log.hpp"

#include <cmath>
#include <limits>
#include <thread>

#include "core/telemetry/performance.hpp"
#include "core/telemetry/timer.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::error_of;
using plugin_test::Json;
using plugin_test::read_text;
using telemetry::RunLog;
using telemetry::Timer;

TEST_CASE("every run has a directory of its own with its config") {
  const toy::TempDir dir;
  const RunLog first(dir / "logs", "grpo: {seed: 1}\n"), second(dir / "logs", "grpo: {seed: 2}\n");
  CHECK(first.directory() == dir / "logs/exp_001");
  CHECK(second.directory() == dir / "logs/exp_002");
  CHECK(read_text(dir / "logs/exp_001/config.yaml") == "grpo: {seed: 1}\n");
  CHECK(read_text(dir / "logs/exp_002/config.yaml") == "grpo: {seed: 2}\n");
}

TEST_CASE("a number that is taken is passed over, also by a file") {
  const toy::TempDir dir;
  dir.write("exp_002/config.yaml", "kept");
  CHECK(RunLog(dir.path(), "").directory() == dir / "exp_001");
  CHECK(RunLog(dir.path(), "").directory() == dir / "exp_003");
  CHECK(read_text(dir / "exp_002/config.yaml") == "kept");
  dir.write("exp_004", "a file");
  CHECK(RunLog(dir.path(), "").directory() == dir / "exp_005");
}

TEST_CASE("a directory that cannot be made is an error of logger.log_dir") {
  const toy::TempDir dir;
  dir.write("file", "");
  CHECK(contains(error_of([&] { RunLog(dir / "file/logs", ""); }), "logger.log_dir: cannot make "));
}

TEST_CASE("one object a step, in a line of its own that is there at once") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  const auto metrics = dir / "exp_001/metrics.jsonl";
  log.add("train", {{"reward", 0.5}, {"grad_norm", std::numeric_limits<double>::quiet_NaN()}});
  log.add("timing/train", {{"generation", 2}});
  CHECK(read_text(metrics).empty());
  log.end_step(1);
  const Json first = Json::parse(read_text(metrics));
  CHECK(first.at("step") == 1);
  CHECK(first.at("time").get<double>() > 1.6e9);
  CHECK(first.at("train/reward") == 0.5);
  CHECK(first.at("train/grad_norm").is_null());
  CHECK(first.at("timing/train/generation") == 2.0);
  log.add("train", {{"loss", std::numeric_limits<double>::infinity()}});
  log.end_step(2);
  const std::string text = read_text(metrics);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  const Json second = Json::parse(text.substr(text.find('\n') + 1));
  CHECK_FALSE(second.contains("train/reward"));  // of the step before
  CHECK(second.at("train/loss").is_null());
}

TEST_CASE("samples are lines, whatever bytes a model wrote") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log.samples("train_data", 3, {Json{{"content", "a\nb"}}, Json{{"content", "\xff\xfe"}}});
  std::ifstream in(dir / "exp_001/train_data_step3.jsonl");
  std::string line;
  REQUIRE(std::getline(in, line));
  CHECK(Json::parse(line).at("content") == "a\nb");
  REQUIRE(std::getline(in, line));
  CHECK(Json::parse(line).at("content") == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("a timer sums by name; scopes nest and repeat") {
  Timer timer;
  {
    const auto total = timer.measure("total_step_time");
    for (int i = 0; i < 2; ++i) {
      const auto part = timer.measure("generation");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  const double total = timer.seconds().at("total_step_time"), part = timer.seconds().at("generation");
  CHECK(part >= 0.02);
  CHECK(part <= total);
  timer.add("generation", 1);
  CHECK(timer.seconds().at("generation") == part + 1);
  timer.reset();
  CHECK(timer.seconds().empty());
}

TEST_CASE("rates are amounts over their times, and over the devices") {
  const telemetry::Metrics seconds = {
      {"total_step_time", 10}, {"policy_training", 4}, {"policy_and_reference_logprobs", 1}, {"generation", 2}};
  const auto rates = telemetry::performance_metrics(
      seconds,
      {.samples = 20, .total_tokens = 1000, .valid_tokens = 600, .devices = 2, .trainers = 2, .generators = 2});
  CHECK(rates.at("samples_per_sec") == 2);
  CHECK(rates.at("samples_per_sec_per_gpu") == 1);
  CHECK(rates.at("tokens_per_sec_per_gpu") == 50);
  CHECK(rates.at("valid_tokens_per_sec_per_gpu") == 30);
  CHECK(rates.at("policy_training_tokens_per_sec_per_gpu") == 125);
  CHECK(rates.at("policy_and_reference_logprobs_tokens_per_sec_per_gpu") == 500);
  CHECK(rates.at("training_worker_group_tokens_per_sec_per_gpu") == 100);
  CHECK(rates.at("generation_tokens_per_sec") == 500);
  CHECK(rates.at("generation_tokens_per_sec_per_gpu") == 250);
  const auto apart = telemetry::performance_metrics(
      seconds,
      {.samples = 20, .total_tokens = 1000, .valid_tokens = 600, .devices = 5, .trainers = 4, .generators = 1});
  CHECK(apart.at("tokens_per_sec_per_gpu") == 20);
  CHECK(apart.at("policy_training_tokens_per_sec_per_gpu") == 62.5);
  CHECK(apart.at("generation_tokens_per_sec_per_gpu") == 500);
  CHECK(telemetry::performance_metrics({{"total_step_time", 0}}, {}).empty());
  CHECK_FALSE(
      telemetry::performance_metrics({{"total_step_time", 1}}, {.samples = 1}).contains("generation_tokens_per_sec"));
}
