// docs/rewards.md: its commands run, its programs' words are JSON, and its configurations train (those that want a server:
// tests/plugins/environment).
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"

using namespace sdk_test;
using plugin_test::contains;
using plugin_test::Json;

namespace {

// The fenced blocks of the page that are of the language.
std::vector<std::string> blocks(const std::string& language) {
  std::ifstream in(toy::source_dir() / "docs/rewards.md");
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

}  // namespace

TEST_CASE("the page of rewards tells what works") {
  const TempDir dir;
  const auto shell = blocks("sh");
  REQUIRE(shell.size() == 1);
  const std::string path = fmt::format("export PATH={}:$PATH\n", toy::hexad().parent_path().string());
  CHECK(contains(must(dir, path + shell[0]), "{\"id\": 0, \"reward\": 1.0}\n"));

  const auto json = blocks("json");
  REQUIRE(json.size() == 2);
  for (const std::string& block : json) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) CHECK(Json::parse(line).contains("id"));
  }

  int trained = 0;
  for (const std::string& block : blocks("yaml")) {
    INFO(block);
    dir.write("page.yaml", block);
    dir.write("toy.yaml", toy::config_text(dir.path()));
    dir.write("run.yaml", "defaults: [toy.yaml, page.yaml]\n");
    must(dir, path + "hexad config check run.yaml");
    must(dir, path + "hexad train run.yaml grpo.max_num_steps=1 checkpointing.enabled=false");
    ++trained;
  }
  CHECK(trained == 3);
}
