// What README.md and pages of docs/ tell a newcomer to type is typed here: their shell blocks, in order, in one shell.
#include <doctest/doctest.h>

#include "tests/run/run_steps.hpp"

using plugin_test::contains;

namespace {

// The text of a page's fenced blocks that are of the language.
std::vector<std::string> blocks(const std::string& language, const std::string& page = "README.md") {
  std::ifstream in(first_party::source() + "/" + page);
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!inside && line == "```" + language) {
      inside = true;
      found.emplace_back();
    } else if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

// A checkout's view: configs from the source, the built program, results in a folder of the test's own.
void look_like_a_checkout(const toy::TempDir& dir) {
  for (const char* name : {"configs", "sdk", "LICENSE"})
    toy::fs::create_directory_symlink(toy::fs::path(first_party::source()) / name, dir / name);
  toy::fs::create_directories(dir / "build");
  toy::fs::create_directory_symlink(std::getenv("HEXAD_BUILD_DIR"), dir / "build/dev");
}

// What it printed.
std::string run_script(const toy::TempDir& dir, const std::string& script) {
  const auto file = dir.write("page.sh", "set -eu\n" + script);
  const int status =
      std::system(fmt::format("cd {} && bash {} > out 2>&1", dir.path().string(), file.string()).c_str());
  const std::string printed = toy::read_text(dir / "out");
  INFO(script << printed);
  CHECK(status == 0);
  return printed;
}

// All of a page of docs/ that is typed, which are `count` blocks.
std::string run_page(const toy::TempDir& dir, const std::string& page, size_t count, std::string script = "") {
  look_like_a_checkout(dir);
  const auto shell = blocks("sh", page);
  CHECK(shell.size() == count);
  for (const std::string& block : shell) script += block;
  return run_script(dir, script);
}

std::vector<double> values(const toy::fs::path& experiment, const std::string& metric) {
  std::vector<double> found;
  for (const auto& line : first_party::lines_of(experiment / "metrics.jsonl"))
    if (line.contains(metric)) found.push_back(line.at(metric));
  REQUIRE(!found.empty());
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("the page for those who know TRL runs as it stands, and its model learns") {
  const toy::TempDir dir;
  const std::string printed = run_page(dir, "docs/from_trl.md", 6);
  const auto rewards = values(dir / "my_run/logs/exp_001", "train/reward");
  CHECK(rewards.front() < 0.3);
  CHECK(rewards.back() > 0.8);
  CHECK(contains(printed, "\nc\n"));  // the first letter of cab
  CHECK(toy::fs::exists(dir / "my_run/model/config.json"));
}

TEST_CASE("the page of SFT, DPO and reward models runs as it stands, and a file of one's own is learned") {
  const toy::TempDir dir;
  const std::string printed = run_page(dir, "docs/supervised.md", 2);
  const auto losses = values(dir / "logs/my_sft/exp_001", "validation/val_loss");
  CHECK(losses.front() > 2);
  CHECK(losses.back() < 0.1);
  CHECK(contains(printed, "\nc\n"));  // the first letter of cab
}

TEST_CASE("the page of reports runs as it stands after the quickstart") {
  const toy::TempDir dir;
  dir.write("check_metrics.py", R"(# NeMo-RL's, without its table
import json, sys
data = json.load(open(sys.argv[1]))
names = {"data": data, "max": lambda metric: max(map(float, metric.values()))}
for check in sys.argv[2:]:
    assert eval(check, names), check
print(len(sys.argv) - 2, "checks hold")
)");
  const std::string printed =
      run_page(dir, "docs/reports.md", 2, "build/dev/bin/hexad train configs/quickstart.yaml\n");
  CHECK(contains(toy::read_text(dir / "compare.html"), "</html>"));
  CHECK(contains(printed, "2 checks hold"));
}

TEST_CASE("the README's shell examples run as they stand") {
  const toy::TempDir dir;
  look_like_a_checkout(dir);
  const auto shell = blocks("sh");
  REQUIRE(shell.size() == 3);
  CHECK(shell[0].starts_with("make quickstart"));  // make's own commands are what runs this test
  const std::string path = "export PATH=$PWD/build/dev/bin:$PATH\n";
  CHECK(contains(toy::read_text(first_party::source() + "/README.md"), "`" + path.substr(0, path.size() - 1) + "`"));
  const std::string printed = run_script(dir, path + shell[1] + shell[2]);
  CHECK(contains(printed, "\nf\n"));  // the letter after the last of fade
  CHECK(contains(printed, "pass@1 over 128 prompts, 4 samples each: "));
  CHECK(contains(toy::read_text(dir / "logs/quickstart/exp_001/report.html"), "</html>"));
}

TEST_CASE("the README shows what config check answers") {
  const toy::TempDir dir;
  look_like_a_checkout(dir);
  const auto config = blocks("yaml"), shown = blocks("console");
  REQUIRE(config.size() == 1);
  REQUIRE(shown.size() == 1);
  dir.write("my_run.yaml", config[0]);
  const size_t line_end = shown[0].find('\n');
  REQUIRE(shown[0].starts_with("$ hexad "));
  const std::string command = "build/dev/bin/" + shown[0].substr(2, line_end - 2);
  const std::string printed = run_script(dir, command + " || test $? = 2\n");
  CHECK(printed == shown[0].substr(line_end + 1));
}

TEST_CASE("the page for plugin authors runs as it stands, and its class is a plugin") {
  const toy::TempDir dir;
  const auto code = blocks("cpp", "docs/plugins.md"), project = blocks("cmake", "docs/plugins.md");
  REQUIRE(code.size() == 1);
  REQUIRE(project.size() == 2);  // the second one shows arguments
  dir.write("reinforce/reinforce.cpp", code[0]);
  dir.write("reinforce/CMakeLists.txt", project[0]);
  const std::string printed = run_page(dir, "docs/plugins.md", 2);
  CHECK(contains(printed, "name      reinforce\nversion   1.0.0\n"));
}

TEST_SUITE_END();
