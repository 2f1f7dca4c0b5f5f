// Environment variables, a launcher's among them, the locale, the clock, and plugins.
#include <doctest/doctest.h>

#include <cstdlib>

#include "app/doctor/topics.hpp"
#include "tests/app/doctor/found.hpp"

using namespace doctor_test;

namespace {

// Variables of this process, while it lives.
class Set {
 public:
  explicit Set(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Set() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  Set(const Set&) = delete;

  Findings launcher() const { return hexad::doctor::launcher(variables_); }

 private:
  Variables variables_;
};

hexad::plugin::Folder folder(const std::string& path, const std::string& origin, bool exists) {
  return {.path = path, .origin = origin, .exists = exists, .trusted = origin == "engine", .manifests = 2};
}

}  // namespace

TEST_CASE("variables that change a run are told without secrets, others not at all") {
  const Findings found = variables({{"HOME", "/home/me"},
                                    {"OMP_NUM_THREADS", "4"},
                                    {"NCCL_DEBUG", "INFO"},
                                    {"HF_TOKEN", "hf_abcdefgh"},
                                    {"https_proxy", "http://me:geheimnis@proxy:3128"},
                                    {"MY_SECRET", "x"}});
  check_all_ok(found, "OMP_NUM_THREADS=4");
  check_all_ok(found, "NCCL_DEBUG=INFO");
  check_all_ok(found, "HF_TOKEN=***");
  check_all_ok(found, "https_proxy=http://me:***@proxy:3128");
  CHECK(found.size() == 4);
  CHECK(variables({}).empty());
}

TEST_CASE("CUDA_LAUNCH_BLOCKING is a note where it is on") {
  check_says(variables({{"CUDA_LAUNCH_BLOCKING", "1"}}), Level::note, "has every kernel waited for");
  CHECK(worst(variables({{"CUDA_LAUNCH_BLOCKING", "0"}})) == Level::ok);
}

TEST_CASE("the variables of this process are those of the environment") {
  const Set set(Variables{{"HEXAD_DOCTOR_TEST", "a=b"}});
  CHECK(variables_of_ours().at("HEXAD_DOCTOR_TEST") == "a=b");
}

TEST_CASE("a launcher is told, and variables of one that did not start this process") {
  check_all_ok(Set({}).launcher(), "none: hexad train starts the ranks");
  check_all_ok(Set(Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}}).launcher(), "none");
  check_all_ok(
      Set(Variables{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "4"}}).launcher(),
      "torchrun: rank 3 of 8, 4 on this host");
  check_says(Set(Variables{{"RANK", "3"}}).launcher(), Level::note,
             "RANK is set, and WORLD_SIZE is not: no launcher is seen, and each hexad train starts all ranks itself");
  check_says(Set(Variables{{"WORLD_SIZE", "8"}}).launcher(), Level::note, "WORLD_SIZE is set, and RANK is not");
  check_says(Set(Variables{{"RANK", "0"}, {"WORLD_SIZE", "8"}}).launcher(), Level::note,
             "RANK and WORLD_SIZE are set, and LOCAL_WORLD_SIZE is not");
  check_says(Set(Variables{{"RANK", "3"}, {"LOCAL_WORLD_SIZE", "4"}}).launcher(), Level::problem,
             "torchrun has started this process, and $WORLD_SIZE is '', wanted a number from 0 | unset the launcher's");
}

TEST_CASE("a locale of other letters is a note") {
  check_all_ok(locale({}), "none is set");
  check_all_ok(locale({{"LANG", "de_DE.UTF-8"}}), "LANG=de_DE.UTF-8");
  check_all_ok(locale({{"LANG", "C"}, {"LC_ALL", ""}}), "LANG=C");
  check_all_ok(locale({{"LANG", "de_DE.ISO-8859-1"}, {"LC_ALL", "C.utf8"}}), "LC_ALL=C.utf8");
  check_says(locale({{"LANG", "C.UTF-8"}, {"LC_CTYPE", "ja_JP.EUC-JP"}}), Level::note,
             "LC_CTYPE=ja_JP.EUC-JP is not of UTF-8, which hexad writes | LC_CTYPE=C.UTF-8");
}

TEST_CASE("a clock before the program was made is a problem") {
  check_all_ok(hexad::doctor::clock(1700000000, 1690000000), "2023-11-14 22:13 UTC");
  check_all_ok(hexad::doctor::clock(1700000000, 1700000000 + 3600), "2023-11-14");
  check_says(hexad::doctor::clock(0, 1700000000), Level::problem,
             "1970-01-01 00:00 UTC, before this program was made (2023-11-14 22:13 UTC) | set it");
}

TEST_CASE("folders of plugins in order, and plugins that cannot be loaded") {
  const Findings found = plugins({folder("/mine", "HEXAD_PLUGIN_PATH", false), folder("/home/x", "user", false),
                                  folder("/own", "engine", true), folder("/own/1", "engine", false)},
                                 {{"loss a", "ok", ""},
                                  {"loss b", "refused", "/own/libb.so: others may write it"},
                                  {"/own/c.hexad.json", "refused", "/own/c.hexad.json: not JSON"},
                                  {"generator d", "not built", "make build"},
                                  {"loss e", "shadowed", "by /own/e.hexad.json"}});
  check_says(found, Level::note, "HEXAD_PLUGIN_PATH: /mine (missing)");
  check_says(found, Level::ok, "engine: /own (2 manifests)");
  check_says(found, Level::problem, "loss b is refused: /own/libb.so: others may write it");
  check_says(found, Level::problem, "/own/c.hexad.json: not JSON | put it right");
  check_says(found, Level::note, "generator d is not built | make build");
  check_says(found, Level::note, "loss e is shadowed by /own/e.hexad.json");
  CHECK(found.size() == 6);
  check_says(plugins({}, {}), Level::problem, "there is none that can be loaded");
  hexad::plugin::Folder closed = folder("/shut", "HEXAD_PLUGIN_PATH", true);
  closed.problem = "/shut: cannot be listed: Permission denied";
  check_says(plugins({closed}, {}), Level::problem, "/shut: cannot be listed: Permission denied | give yourself");
}
