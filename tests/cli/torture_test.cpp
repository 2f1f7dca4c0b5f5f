// kill -9 in every phase of a run, of the controller and of a worker: the resumed run ends like the undisturbed one, bit for
// bit, and nothing is left of the killed one. On toy plugins, which kill where they are told to.
#include <doctest/doctest.h>

#include "tests/support/torture.hpp"

namespace fs = std::filesystem;
using toy::TempDir;

namespace {

using Arguments = std::vector<std::string>;

Arguments train(const TempDir& dir, Arguments overrides = {}) {
  const auto config = dir.write("toy.yaml", toy::config_text(dir.path()));
  overrides.insert(overrides.begin(), {"train", config.string(), "checkpointing.save_period=1", "grpo.val_period=2"});
  return overrides;
}

// All that the last checkpoint holds, but for times and paths.
std::map<std::string, std::string> last(const TempDir& dir) {
  auto files = torture::contents(dir / "checkpoints/step_6/policy");
  CHECK(files.contains("weights/toy.bin"));
  return files;
}

}  // namespace

TEST_CASE("killed in a named phase, the run goes on and ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  REQUIRE(toy::run(train(undisturbed)).code == 0);
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
      const toy::Ended killed = toy::run(train(dir, {fault}));
      INFO(killed.err);
      CHECK(killed.code == (who == "kill" ? 4 : -SIGKILL));
      fs::create_directories(dir / "checkpoints");
      torture::go_on(train(dir), dir / "checkpoints");
      CHECK(last(dir) == wanted);
    }
  }
}

TEST_CASE("killed at any moment, again and again, the run ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  const toy::Ended whole = toy::run(train(undisturbed));
  REQUIRE(whole.code == 0);
  const auto wanted = last(undisturbed);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> moment(0, 1.2 * whole.seconds);
  for (int i = 0; i < torture::kills(8); ++i) {
    CAPTURE(i);
    const TempDir dir;
    fs::create_directories(dir / "checkpoints");
    for (int times = 1 + i % 3; times > 0; --times) torture::start_and_kill(train(dir), moment(random), i % 2 == 0);
    torture::go_on(train(dir), dir / "checkpoints");
    CHECK(last(dir) == wanted);
  }
}
