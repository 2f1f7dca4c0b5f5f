// The template of trackers: what it makes of its own test input, and a run that uses it.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"

using namespace sdk_test;
using plugin_test::contains;
using plugin_test::Json;

TEST_CASE("tracker_python works as it is") {
  const TempDir dir;
  const toy::Ended made = toy::run({"plugin", "new", "tracker_python", "my_tracker", "--into", dir.path().string()});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  CHECK(files_below(dir / "my_tracker") ==
        std::vector<std::string>{"README.md", "my_tracker.py", "test.jsonl", "use.yaml"});

  // The printed command, on the test input.
  const size_t next = made.out.find("next:\n");
  REQUIRE(next != std::string::npos);
  CHECK(contains(must(dir, made.out.substr(next + 6)), "my_tracker: finished"));
  CHECK(toy::read_text(dir / "my_tracker.tsv") == "1\t0.2500\n2\t0.5000\n");

  // use.yaml on top of a config, from another folder.
  const fs::path config = dir.write("toy.yaml", toy::config_text(dir.path()));
  dir.write("run.yaml", fmt::format("defaults: [{}, my_tracker/use.yaml]\n", config.string()));
  const toy::Ended run = toy::run({"train", (dir / "run.yaml").string(), "grpo.max_num_steps=3"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK_MESSAGE(contains(run.err, "tracker my_tracker: my_tracker: finished\n"), run.err);
  std::string wanted;
  std::ifstream metrics(dir / "logs/exp_001/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const Json step = Json::parse(line);
    wanted += fmt::format("{}\t{:.4f}\n", step.at("step").get<int>(), step.at("train/reward").get<double>());
  }
  CHECK(toy::read_text(dir / "my_tracker/my_tracker.tsv") == wanted);
}
