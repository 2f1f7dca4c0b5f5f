// kill -9 of the quickstart's controller and workers at random moments, deterministic: weights and optimizer of the
// resumed run are those of the undisturbed one, bit for bit; and those of a run whose reward programs are killed.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"
#include "tests/support/torture.hpp"

using toy::TempDir;

namespace {

std::vector<std::string> six_steps(const TempDir& dir, const std::string& config = "") {
  return first_party::train(config.empty() ? first_party::source() + "/configs/quickstart.yaml" : config, dir,
                            {"grpo.max_num_steps=6", "checkpointing.save_period=1", "++policy.deterministic=true",
                             "grpo.num_prompts_per_step=16", "grpo.val_period=3", "++cluster.device=cpu"});
}

std::vector<std::string> rewarded(const TempDir& dir, const torture::Rewards& rewards) {
  const std::string text = fmt::format("defaults: [{}/configs/quickstart.yaml, {}]\n", first_party::source(),
                                       rewards.file.filename().string());
  return six_steps(dir, dir.write("run.yaml", text).string());
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a quickstart with reward programs killed at any moment ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  const torture::Rewards rewards(undisturbed);
  const toy::Ended whole = toy::run(rewarded(undisturbed, rewards));
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  const auto wanted = torture::contents(undisturbed / "checkpoints/step_6/policy");
  CHECK(wanted.size() >= 3);
  std::mt19937 random(17);
  for (int i = 0; i < torture::kills(1); ++i) {
    CAPTURE(i);
    const TempDir dir;
    const torture::Rewards own(dir);
    torture::kill_rewards(rewarded(dir, own), own, whole.seconds, random);
    torture::all_scored(dir / "logs");
    CHECK(torture::contents(dir / "checkpoints/step_6/policy") == wanted);
  }
}

TEST_CASE("a quickstart that is killed at any moment ends like the undisturbed one, bit for bit") {
  const TempDir undisturbed;
  const toy::Ended whole = toy::run(six_steps(undisturbed));
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  const auto wanted = torture::contents(undisturbed / "checkpoints/step_6/policy");
  CHECK(wanted.size() >= 3);
  std::mt19937 random(11);
  std::uniform_real_distribution<double> moment(0.2 * whole.seconds, whole.seconds);
  for (int i = 0; i < torture::kills(2); ++i) {
    CAPTURE(i);
    const TempDir dir;
    torture::fs::create_directories(dir / "checkpoints");
    torture::start_and_kill(six_steps(dir), moment(random), i % 2 == 0);
    torture::go_on(six_steps(dir), dir / "checkpoints");
    CHECK(torture::contents(dir / "checkpoints/step_6/policy") == wanted);
  }
}

TEST_SUITE_END();
