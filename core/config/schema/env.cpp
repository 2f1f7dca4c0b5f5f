#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_env(Schema& s) {
  s.section("env", "environments: env.<name> holds the arguments of the environment <name>");
  s.add("env.should_use_nemo_gym", kBool, "false", "roll out with NeMo-Gym").unavailable("NeMo-Gym");
  s.add("env.should_log_nemo_gym_responses", kBool, "false", "of NeMo-Gym").dormant();
  s.add("env.nemo_gym", kMap | kNull, "null", "NeMo-Gym's settings").open().dormant();
  s.add("env.should_mask_flagged_samples", kBool, "", "of NeMo-Gym: samples that it flags leave the loss")
      .accepted("only NeMo-Gym flags samples; one that an environment here cannot score is left out anyway");
  s.add("env.*", kMap | kNull, "", "arguments of the environment of this name: docs/rewards.md").open();
}

}  // namespace hexad::config
