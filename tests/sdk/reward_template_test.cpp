// The templates of rewards: what they say to their own test input, and a run that uses them.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"

using namespace sdk_test;
using plugin_test::contains;
using plugin_test::Json;

namespace {

void check_template(const std::string& kind, const std::string& script) {
  CAPTURE(kind);
  const TempDir dir;
  const toy::Ended made = toy::run({"plugin", "new", kind, "my_reward", "--into", dir.path().string()});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  CHECK(files_below(dir / "my_reward") == std::vector<std::string>{"README.md", script, "test.jsonl", "use.yaml"});
  for (const std::string& file : files_below(dir / "my_reward"))
    CHECK_MESSAGE(toy::read_text(dir / "my_reward" / file).find('@') == std::string::npos, file);

  // The printed command, on the test input.
  const size_t next = made.out.find("next:\n");
  REQUIRE(next != std::string::npos);
  std::istringstream answers(must(dir, made.out.substr(next + 6)));
  std::vector<Json> got;
  for (std::string line; std::getline(answers, line);) got.push_back(Json::parse(line));
  REQUIRE(got.size() == 5);
  const double rewards[] = {1, 0.1, 0, 1};
  for (int i = 0; i < 5; ++i) {
    CHECK(got[i].at("id") == i);
    if (i < 4) CHECK(got[i].at("reward") == rewards[i]);
  }
  CHECK(got[4].at("invalid") == true);

  // use.yaml on top of a config, from another folder.
  const fs::path config = dir.write("toy.yaml", toy::config_text(dir.path()));
  dir.write("run.yaml", fmt::format("defaults: [{}, my_reward/use.yaml]\n", config.string()));
  const toy::Ended run = toy::run({"train", (dir / "run.yaml").string(), "grpo.max_num_steps=2"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  std::ifstream in(dir / "logs/exp_001/metrics.jsonl");
  std::string line;
  REQUIRE(std::getline(in, line));
  CHECK(Json::parse(line).at("train/reward") == 0);  // the toy knows no tags
  CHECK_FALSE(contains(line, "num_invalid_samples"));
}

}  // namespace

TEST_CASE("reward_python and reward_bash work as they are") {
  check_template("reward_python", "my_reward.py");
  check_template("reward-bash", "my_reward.sh");
}
