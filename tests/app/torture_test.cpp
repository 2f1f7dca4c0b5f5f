// kill -9 in every phase of a run, of the controller and of a worker: the resumed run ends like the undisturbed one,
// bit for bit, and nothing is left of the killed one. The same of reward programs, without which the run goes on. On
// toy plugins, which kill where they are told to.
#include <doctest/doctest.h>

#include "tests/support/torture.hpp"
#include "tests/support/toy/train.hpp"

namespace fs = std::filesystem;
using toy::TempDir;

namespace {

using Arguments = std::vector<std::string>;

Arguments train_saving(const TempDir& dir, Arguments overrides = {}) {
  overrides.insert(overrides.begin(), {"checkpointing.save_period=1", "grpo.val_period=2"});
  return toy::train(dir, std::move(overrides));
}

// All that the last checkpoint holds, but for times and paths.
std::map<std::string, std::string> last(const TempDir& dir) {
  auto files = torture::contents(dir / "checkpoints/step_6/policy");
  CHECK(files.contains("weights/toy.bin"));
  return files;
}

Arguments train_rewarded(const TempDir& dir, const torture::Rewards& rewards, const Arguments& overrides = {}) {
  Arguments arguments = train_saving(dir, overrides);
  arguments[1] =
      dir.write("run.yaml", fmt::format("defaults: [toy.yaml, {}]\n", rewards.file.filename().string())).string();
  return arguments;
}

// The run whose reward programs are killed as the variable or the override says. One attempt more is enough.
void check_rewards_killed(const Arguments& environment, Arguments overrides,
                          const std::map<std::string, std::string>& wanted) {
  overrides.emplace_back("env.mine.retries=1");
  const TempDir dir;
  const torture::Rewards rewards(dir);
  Arguments command = {"env", "HEXAD_TOY_REWARDS=" + rewards.script.string()};
  command.insert(command.end(), environment.begin(), environment.end());
  command.push_back(toy::hexad().string());
  const toy::Ended ended = toy::Program(command, train_rewarded(dir, rewards, overrides), "").wait();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(plugin_test::contains(ended.err, "was killed by signal 9"));
  CHECK(rewards.gone());
  torture::all_scored(dir / "logs");
  CHECK(last(dir) == wanted);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE(
    "killed reward programs: in every named phase, the run goes on and ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  const torture::Rewards rewards(undisturbed);
  REQUIRE(toy::run(train_rewarded(undisturbed, rewards)).code == 0);
  const auto wanted = last(undisturbed);
  for (const char* where : {"start@0", "read@1", "half@3", "answered@3", "read@6"}) {
    CAPTURE(where);
    check_rewards_killed({fmt::format("HEXAD_REWARD_FAULT={}", where)}, {}, wanted);
  }
  for (const std::string where :
       {"policy create@0", "policy forward@3", "policy train@3", "policy save@3", "policy refit@4",
        "policy.generation generate@3", "policy.generation refit@4", "policy.generation generate@0"}) {
    CAPTURE(where);
    const size_t space = where.find(' ');
    const std::string fault =
        fmt::format("+{}.plugin_config.fault={}:kill_rewards", where.substr(0, space), where.substr(space + 1));
    check_rewards_killed({}, {fault}, wanted);
  }
}

TEST_CASE("killed reward programs: at any moment, the run goes on and ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  const torture::Rewards rewards(undisturbed);
  const toy::Ended whole = toy::run(train_rewarded(undisturbed, rewards));
  REQUIRE(whole.code == 0);
  const auto wanted = last(undisturbed);
  std::mt19937 random(13);
  size_t killed = 0;
  for (int i = 0; i < torture::kills(6); ++i) {
    CAPTURE(i);
    const TempDir dir;
    const torture::Rewards own(dir);
    killed += torture::kill_rewards(train_rewarded(dir, own), own, whole.seconds, random);
    torture::all_scored(dir / "logs");
    CHECK(last(dir) == wanted);
  }
  CHECK(killed > 0);
}

TEST_CASE("killed in a named phase, the run goes on and ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  REQUIRE(toy::run(train_saving(undisturbed)).code == 0);
  const auto wanted = last(undisturbed);
  for (const std::string where :
       {"policy create@0", "policy forward@3", "policy train@3", "policy save@3", "policy refit@4",
        "policy.generation generate@3", "policy.generation refit@4", "policy.generation generate@0"}) {
    for (const std::string who : {"kill", "kill_controller"}) {
      CAPTURE(where);
      CAPTURE(who);
      const TempDir dir;
      const size_t space = where.find(' ');
      const std::string fault =
          fmt::format("+{}.plugin_config.fault={}:{}", where.substr(0, space), where.substr(space + 1), who);
      const toy::Ended killed = toy::run(train_saving(dir, {fault}));
      INFO(killed.err);
      CHECK(killed.code == (who == "kill" ? 4 : -SIGKILL));
      fs::create_directories(dir / "checkpoints");
      torture::go_on(train_saving(dir), dir / "checkpoints");
      CHECK(last(dir) == wanted);
    }
  }
}

TEST_CASE("killed at any moment, again and again, the run ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  const toy::Ended whole = toy::run(train_saving(undisturbed));
  REQUIRE(whole.code == 0);
  const auto wanted = last(undisturbed);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> moment(0, 1.2 * whole.seconds);
  for (int i = 0; i < torture::kills(8); ++i) {
    CAPTURE(i);
    const TempDir dir;
    fs::create_directories(dir / "checkpoints");
    for (int times = 1 + i % 3; times > 0; --times)
      torture::start_and_kill(train_saving(dir), moment(random), i % 2 == 0);
    torture::go_on(train_saving(dir), dir / "checkpoints");
    CHECK(last(dir) == wanted);
  }
}

TEST_SUITE_END();
