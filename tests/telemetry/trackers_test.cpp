// What a run's log tells its trackers, line by line.
#include "core/telemetry/trackers.hpp"

#include <limits>

#include "core/telemetry/run_log.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::Json;
using telemetry::RunLog;

namespace {

config::TrackerConfig keeps(const toy::fs::path& file, const Json& settings = Json::object()) {
  return {"mine", {"/bin/sh", "-c", "cat > " + file.string()}, "", {}, settings};
}

std::vector<Json> lines(const toy::fs::path& path) {
  std::vector<Json> found;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) found.push_back(Json::parse(line));
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("trackers are told of steps, of tables of the first samples, and of the end") {
  const toy::TempDir dir;
  const test_support::Log said;
  RunLog log(dir / "logs", "");
  log.track({keeps(dir / "told")}, "", {"the-id", "the-name", 7, {{"grpo", {{"seed", 1}}}}});
  std::vector<nlohmann::ordered_json> samples;
  for (int i = 0; i < 20; ++i)
    samples.push_back({{"content", std::string(5000, 'x')}, {"token_ids", {1, 2}}, {"rewards", i}, {"tokens", {"a"}}});
  log.samples("train_data", 8, {"", 1, [](int64_t) { return std::string("{}"); }, 1}, samples);
  log.add("train", {{"reward", 0.5}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  log.end_step(8);
  log.add("validation", {{"accuracy", 1}});
  log.end_step(9);
  log.end_tracking("finished");
  const std::vector<Json> told = lines(dir / "told");
  REQUIRE(told.size() == 5);
  CHECK(told[0] == Json{{"event", "start"},
                        {"id", "the-id"},
                        {"project", "hexad"},
                        {"name", "the-name"},
                        {"resumed_at", 7},
                        {"log_dir", (dir / "logs/exp_001").string()},
                        {"settings", Json::object()},
                        {"config", {{"grpo", {{"seed", 1}}}}}});
  CHECK(told[1].at("columns") == Json({"content", "rewards"}));
  CHECK(told[1].at("rows").size() == 16);
  CHECK(told[1].at("rows")[15] == Json({std::string(4000, 'x') + " ...", 15}));
  CHECK(told[2].at("metrics") == Json{{"train/loss", nullptr}, {"train/reward", 0.5}});
  CHECK(told[2].at("time") == lines(dir / "logs/exp_001/metrics.jsonl")[0].at("time"));
  CHECK(told[3].at("metrics") == Json{{"validation/accuracy", 1.0}});
  CHECK(told[4] == Json{{"event", "end"}, {"status", "finished"}});
  CHECK(said.text() == "");
}

TEST_CASE("a tracker's settings name project and run, and it is told of a report that is there") {
  const toy::TempDir dir;
  RunLog log(dir / "logs", "");
  const Json settings[] = {{{"project", "p"}, {"name", "n"}},
                           {{"experiment_name", "p"}, {"run_name", "n"}, {"x", {1}}}};
  log.track({keeps(dir / "a", settings[0]), keeps(dir / "b", settings[1])}, "", {"id", "", 0, {}});
  dir.write("logs/exp_001/report.html", "");
  log.end_tracking("failed");
  for (const int i : {0, 1}) {
    const std::vector<Json> told = lines(dir / (i == 0 ? "a" : "b"));
    REQUIRE(told.size() == 3);
    CHECK(told[0].at("project") == "p");
    CHECK(told[0].at("name") == "n");
    CHECK(told[0].at("settings") == settings[i]);
    CHECK(told[1].at("path") == (dir / "logs/exp_001/report.html").string());
    CHECK(told[2].at("status") == "failed");
  }
}

TEST_CASE("a script that ships with the engine follows the interpreter") {
  const toy::TempDir dir;
  dir.write("to_x.py", "cat > " + (dir / "told").string() + "\n");
  RunLog log(dir / "logs", "");
  log.track({{"x", {"/bin/sh"}, "to_x.py", {}, Json::object()}}, dir.path(), {"id", "", 0, {}});
  log.end_tracking("interrupted");
  CHECK(lines(dir / "told").size() == 2);
}
