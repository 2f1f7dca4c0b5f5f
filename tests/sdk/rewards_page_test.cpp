// docs/rewards.md: its commands run, its programs' words are JSON, and its configurations train (those that want a
// server: tests/plugins/environment).
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"
#include "tests/support/free_port.hpp"

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

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

}  // namespace

TEST_CASE("the page of rewards tells what works") {
  const TempDir dir;
  const auto shell = blocks("sh");
  REQUIRE(shell.size() == 2);
  const std::string path =
      fmt::format("export PATH={}:$PATH no_proxy=127.0.0.1\n", toy::hexad().parent_path().string());
  CHECK(contains(must(dir, path + shell[0]), "{\"id\": 0, \"reward\": 1.0}\n"));

  const auto json = blocks("json");
  REQUIRE(json.size() == 2);
  for (const std::string& block : json) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) CHECK(Json::parse(line).contains("id"));
  }

  const auto python = blocks("python");
  REQUIRE(python.size() == 2);
  dir.write("my_trl_reward.py", python[0]);
  dir.write("server.py", python[1]);
  const std::string port = std::to_string(test_support::free_port());
  const auto here = [&](std::string text) { return replaced(std::move(text), "8080", port); };
  const bool plugin = fs::exists(toy::hexad().parent_path().parent_path() / "lib/hexad/plugins/libhttp_reward.so");
  int trained = 0;
  for (const std::string& block : blocks("yaml")) {
    INFO(block);
    if (contains(block, "judge:")) continue;  // tests/plugins/environment/http_reward_test.cpp
    const bool server = contains(block, "http_reward");
    if (server && !plugin) continue;
    dir.write("page.yaml", here(block));
    dir.write("toy.yaml", toy::config_text(dir.path()));
    dir.write("run.yaml", "defaults: [toy.yaml, page.yaml]\n");
    const std::string start = server ? "trap 'kill $!' EXIT\n" + here(shell[1]) : "";
    const std::string said = must(dir, path + start +
                                           "\nhexad config check run.yaml\n"
                                           "hexad train run.yaml grpo.max_num_steps=1 checkpointing.enabled=false");
    if (server) CHECK_MESSAGE(contains(said, "{\"id\": 0, \"reward\": 1.0}"), said);
    ++trained;
  }
  CHECK(trained == (plugin ? 5 : 4));
}
