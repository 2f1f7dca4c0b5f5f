// A run read back from its directory.
#include "app/report/run_record.hpp"

#include <cmath>

#include "core/telemetry/run_log.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad::report;
using hexad::telemetry::RunLog;
using plugin_test::Json;

TEST_CASE("metrics are columns, with nothing where a step lacks one") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "policy: {lr: 1.0e-3, betas: [0.9, 0.95]}\n");
  log.add("train", {{"reward", 0.5}});
  log.end_step(3);
  log.add("train", {{"reward", 0.75}});
  log.add("validation", {{"accuracy", 0.25}});
  log.end_step(4);
  const RunRecord run = read_run(log.directory().string() + "/");
  CHECK(run.name == dir.path().filename().string() + "/exp_001");
  CHECK(run.steps == std::vector<int64_t>{3, 4});
  CHECK(run.times[0] > 1e9);
  REQUIRE(run.find("train/reward"));
  CHECK(*run.find("train/reward") == std::vector<double>{0.5, 0.75});
  REQUIRE(run.find("validation/accuracy"));
  CHECK(std::isnan(run.find("validation/accuracy")->at(0)));
  CHECK(run.find("time") == nullptr);
  CHECK(run.settings.at("policy.lr") == "0.001");
  CHECK(run.settings.at("policy.betas") == "[0.9,0.95]");
}

TEST_CASE("check_metrics.py's form: steps by name, of a run and its resumption") {
  const toy::TempDir dir;
  RunLog first(dir.path(), ""), resumed(dir.path(), "");
  for (int64_t step = 1; step <= 3; ++step) {
    first.add("train", {{"reward", 0.1 * static_cast<double>(step)}, {"loss", step == 2 ? INFINITY : 1.0}});
    first.end_step(step);
  }
  resumed.add("train", {{"reward", 0.9}});
  resumed.end_step(3);
  const Json metrics = metrics_by_step({read_run(first.directory()), read_run(resumed.directory())});
  CHECK(metrics.at("train/reward") == Json{{"1", 0.1}, {"2", 0.2}, {"3", 0.9}});
  CHECK(metrics.at("train/loss") == Json{{"1", 1.0}, {"3", 1.0}});
}

TEST_CASE("a config that is not YAML leaves its text") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "a: [1");
  log.end_step(1);
  CHECK(read_run(log.directory()).config == "a: [1");
  CHECK(read_run(log.directory()).settings.empty());
}

TEST_CASE("a step that is no number is refused by file and row") {
  const toy::TempDir dir;
  dir.write("metrics.jsonl", "{\"step\": 1}\n{\"step\": \"2\"}\n");
  CHECK(plugin_test::error_of([&] { read_run(dir.path()); }) ==
        "report: " + (dir / "metrics.jsonl").string() + ": step is \"2\" in row 2, want a whole number");
}
