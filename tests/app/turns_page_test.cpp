// docs/turns.md: its program answers its command, and its configuration trains.
#include <doctest/doctest.h>

#include "tests/support/toy/program.hpp"

using plugin_test::contains;
using plugin_test::Json;
using toy::TempDir;

namespace {

// The fenced block of the page that is of the language.
std::string block(const std::string& language) {
  std::ifstream in(toy::source_dir() / "docs/turns.md");
  std::string found, line;
  while (std::getline(in, line) && line != "```" + language) {
  }
  while (std::getline(in, line) && line != "```") found += line + "\n";
  REQUIRE(!found.empty());
  return found;
}

}  // namespace

TEST_CASE("the page of several turns tells what works") {
  const TempDir dir;
  dir.write("guess.py", block("python"));
  const std::string out = (dir / "out").string();
  REQUIRE(std::system(fmt::format("cd {} && ({}) > {}", dir.path().string(), block("sh"), out).c_str()) == 0);
  CHECK(Json::parse(toy::read_text(out)) == Json{{"id", 0}, {"reward", 0}, {"state", 1}, {"reply", "later"}});

  std::string page = block("yaml");
  const size_t at = page.find("guess.py");
  REQUIRE(at != page.npos);
  page.replace(at, 8, (dir / "guess.py").string());
  dir.write("page.yaml", page);
  dir.write("toy.yaml", toy::config_text(dir.path()));
  const auto config = dir.write("run.yaml", "defaults: [toy.yaml, page.yaml]\n");
  const toy::Ended run = toy::run({"train", config.string(), "grpo.max_num_steps=2", "checkpointing.enabled=false",
                                   "policy.max_total_sequence_length=40"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  std::ifstream in(dir / "logs/exp_001/metrics.jsonl");
  std::string line;
  REQUIRE(std::getline(in, line));
  const Json step = Json::parse(line);
  CHECK(step.at("train/avg_turns_per_sample").get<double>() > 1);
  CHECK(step.at("train/mean_env_tokens_per_sample").get<double>() > 0);
  CHECK_FALSE(step.contains("train/num_invalid_samples"));
}
