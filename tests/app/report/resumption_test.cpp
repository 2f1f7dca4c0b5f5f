// A run of several folders is one.
#include "app/report/resumption.hpp"

#include <cmath>

#include "app/report/report.hpp"
#include "tests/app/report/browser.hpp"

using namespace hexad::report;
using plugin_test::contains;
using plugin_test::Json;

namespace {

// A folder whose steps take 2 s each, the first of them at `begin`; rewards are 1000 * number + step.
void write(const toy::TempDir& dir, int number, int64_t from, int64_t to, double begin,
           const std::string& checkpoints = "ckpt") {
  const std::string folder = fmt::format("exp_{:03d}/", number);
  std::string text;
  for (int64_t step = from; step <= to; ++step) {
    const Json line = {{"step", step},
                       {"time", begin + 2.0 * static_cast<double>(step - from + 1)},
                       {"train/reward", 1000.0 * number + static_cast<double>(step)},
                       {"timing/train/total_step_time", 2.0}};
    text += line.dump() + "\n";
  }
  dir.write(folder + "metrics.jsonl", text);
  dir.write(folder + "config.yaml", fmt::format("checkpointing: {{checkpoint_dir: {}}}\n", checkpoints));
  for (const int64_t step : {from, to})
    dir.write(folder + fmt::format("train_data_step{}.jsonl", step),
              Json{{"response", fmt::format("of {}", number)}, {"rewards", 1.0}}.dump() + "\n");
}

std::vector<std::string> folders_of(const RunRecord& run) {
  std::vector<std::string> names;
  for (const LogFolder& folder : run.folders) names.push_back(folder.directory.filename().string());
  return names;
}

}  // namespace

TEST_CASE("steps up to the checkpoint come from the folder before, and pauses are no training") {
  const toy::TempDir dir;
  write(dir, 1, 1, 6, 1000);  // killed at 6, saved at 4
  write(dir, 2, 5, 7, 9000);
  write(dir, 3, 8, 9, 70000);
  const RunRecord run = read_resumed(dir / "exp_003");
  CHECK(folders_of(run) == std::vector<std::string>{"exp_001", "exp_002", "exp_003"});
  CHECK(run.steps == std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(*run.find("train/reward") == std::vector<double>{1001, 1002, 1003, 1004, 2005, 2006, 2007, 3008, 3009});
  CHECK(seconds_of_training(run) == std::vector<double>{2, 4, 6, 8, 10, 12, 14, 16, 18});
  CHECK(read_resumed(dir / "exp_003/").steps == run.steps);
  CHECK(read_resumed(dir / "exp_001").steps.size() == 6);
}

TEST_CASE("a metric that one folder lacks, and a validation before the first step") {
  const toy::TempDir dir;
  write(dir, 1, 1, 4, 1000);
  write(dir, 2, 5, 5, 9000);
  dir.write("exp_002/metrics.jsonl", Json{{"step", 4}, {"time", 9000}, {"validation/accuracy", 0.5}}.dump() + "\n" +
                                         Json{{"step", 5}, {"time", 9002}, {"train/loss", 0.25}}.dump() + "\n");
  const RunRecord run = read_resumed(dir / "exp_002");
  CHECK(run.steps == std::vector<int64_t>{1, 2, 3, 4, 4, 5});
  CHECK(std::isnan(run.find("train/reward")->at(5)));
  CHECK(std::isnan(run.find("train/loss")->at(0)));
  CHECK(run.find("train/loss")->at(5) == 0.25);
  CHECK(run.find("validation/accuracy")->at(4) == 0.5);
}

TEST_CASE("what goes on from another folder's checkpoints, begins anew or lacks the step is a run of its own") {
  const toy::TempDir dir;
  write(dir, 1, 1, 6, 1000);
  write(dir, 2, 1, 6, 2000);           // --fresh
  write(dir, 3, 7, 8, 3000, "other");  // of other checkpoints
  write(dir, 4, 20, 21, 4000);         // of a step that no folder has
  write(dir, 5, 7, 8, 5000);           // goes on from the newest that has step 6
  for (const int number : {1, 2, 3, 4})
    CHECK(read_resumed(dir / fmt::format("exp_{:03d}", number)).folders.size() == 1);
  CHECK(folders_of(read_resumed(dir / "exp_005")) == std::vector<std::string>{"exp_002", "exp_005"});
}

TEST_CASE("a start that was killed between its checkpoint and that step's line is gone on from") {
  const toy::TempDir dir;
  write(dir, 1, 1, 49, 1000);  // the checkpoint of step 50 is there
  write(dir, 2, 51, 52, 2000);
  const RunRecord run = read_resumed(dir / "exp_002");
  CHECK(folders_of(run) == std::vector<std::string>{"exp_001", "exp_002"});
  CHECK(run.steps.size() == 51);
  write(dir, 3, 51, 52, 3000);  // nothing of exp_002 was saved
  CHECK(folders_of(read_resumed(dir / "exp_003")) == std::vector<std::string>{"exp_001", "exp_003"});
}

TEST_CASE("of a logger.log_dir the newest folder with metrics; folders that are named together stay apart") {
  const toy::TempDir dir;
  write(dir, 1, 1, 6, 1000);
  write(dir, 12, 7, 8, 2000);
  dir.write("exp_013/metrics.jsonl", "");  // it has just begun
  CHECK(newest_run(dir.path()) == dir / "exp_012");
  CHECK(newest_run(dir / "exp_001") == dir / "exp_001");
  std::filesystem::create_symlink("metrics.jsonl", dir.write("exp_014/x", "").parent_path() / "metrics.jsonl");
  CHECK(newest_run(dir.path()) == dir / "exp_012");  // one that cannot be looked into is none
  write(dir, 15, 9, 9, 3000);
  const auto runs = read_named({dir.path(), dir / "exp_001"});
  REQUIRE(runs.size() == 2);
  CHECK(folders_of(runs[0]) == std::vector<std::string>{"exp_012", "exp_015"});
  CHECK(folders_of(runs[1]) == std::vector<std::string>{"exp_001"});
}

TEST_CASE("hexad report AFTER is one run and says what was changed; BEFORE AFTER has the table, --json their newest") {
  const toy::TempDir dir;
  write(dir, 1, 1, 6, 1000);
  write(dir, 2, 7, 8, 2000);
  dir.write("exp_002/config.yaml", "{checkpointing: {checkpoint_dir: ckpt}, lr: 0.002}\n");
  const std::string before = (dir / "exp_001").string(), after = (dir / "exp_002").string();
  const toy::Ended one = toy::run({"report", dir.path()});
  CHECK(one.out == after + "/report.html\n");
  CHECK(one.err ==
        fmt::format("{1} goes on from exp_001: one run. 1 setting differs: hexad report {0} {1}\n", before, after));

  const toy::Ended two = toy::run({"report", before, after, "--out", dir / "two.html"});
  CHECK(two.err.empty());
  CHECK(contains(two.out, fmt::format("[1] {}\n[2] {}\n", before, after)));
  CHECK(contains(two.out, "\nlr                                            -      0.002\n"));
  const toy::Ended compared = toy::run({"report", "--compare", after, "--out", dir / "one.html"});
  CHECK_FALSE(contains(compared.out, "The settings are the same"));

  const toy::Ended json = toy::run({"report", "--json", dir.path()});
  CHECK_MESSAGE(json.code == 0, json.err);
  CHECK(Json::parse(json.out).at("train/reward") == Json{{"7", 2007.0}, {"8", 2008.0}});
}

TEST_SUITE_BEGIN("timing");  // a browser that must answer in time

TEST_CASE("the page of a resumed run is one curve, says what it goes on from, and has samples of all its folders") {
  const toy::TempDir dir;
  write(dir, 1, 1, 6, 1000);
  write(dir, 2, 5, 8, 9000);
  write_report(dir / "exp_002");
  const std::string curves = "[...document.querySelectorAll('#charts svg[aria-label=Reward] path')]";
  const Json visit =
      browser::visit(browser::url_of(dir / "exp_002/report.html"),
                     {{"subtitle", "document.getElementById('subtitle').textContent"},
                      {"samples", "document.getElementById('samples').textContent"},
                      {"points", "Math.max(..." + curves + ".map(p => p.getAttribute('d').split('L').length))"}});
  const Json read = browser::saw(dir, Json::array({visit})).at(0).at("read");
  CHECK(read.at("subtitle").get<std::string>().starts_with("8 steps in 16.0 s"));
  CHECK(read.at("subtitle").get<std::string>().ends_with("; goes on from exp_001"));
  CHECK(read.at("points") == 8);
  CHECK(contains(read.at("samples"), "of 1"));
  CHECK(contains(read.at("samples"), "of 2"));
}

TEST_SUITE_END();
