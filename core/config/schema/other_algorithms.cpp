#include "core/config/schema/blocks.hpp"

namespace hexad::config {

// A config of another algorithm is known by its block.
void add_other_algorithms(Schema& s) {
  const auto block = [&](const char* path, const char* algorithm) {
    s.add(path, kMap | kNull, "", std::string("settings of ") + algorithm).open().unavailable(algorithm, {"null"});
  };
  block("ppo", "PPO");
  block("value", "a value model (PPO)");
  block("value_loss_fn", "a value model (PPO)");
  block("distillation", "distillation");
  block("teacher", "a teacher model (distillation)");
  s.add("teachers", kAny, "", "settings of teacher models")
      .open()
      .unavailable("a teacher model (distillation)", {"null"});
  block("generation", "evaluation without a block `eval`");
  block("tokenizer", "evaluation without a block `eval`");
  s.add("on_policy_distillation", kMap | kNull, "null", "training towards a teacher's log-probs")
      .open()
      .unavailable("on-policy distillation", {"null"});
}

}  // namespace hexad::config
