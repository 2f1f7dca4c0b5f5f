#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

struct CourseDefaults {
  const char *epochs, *steps, *val_period, *val_batches, *val_global_batch_size, *val_at_start, *examples;
};

// What the blocks have in common; `d.examples`: what a batch counts.
void add_course(Schema& s, const std::string& at, const CourseDefaults& d) {
  s.add(at + ".max_num_epochs", kInt, d.epochs, "most passes over the training data").at_least(1);
  s.add(at + ".max_num_steps", kInt, d.steps, "most steps; -1: as many as the epochs hold").at_least(-1);
  s.add(at + ".val_period", kInt, d.val_period, "validate every so many steps; 0 or -1: never in between").at_least(-1);
  s.add(at + ".val_batches", kInt, d.val_batches,
        "most validation batches, the first of the sets; 0 or -1: all there are")
      .at_least(-1);
  s.add(at + ".val_global_batch_size", kInt, d.val_global_batch_size,
        std::string(d.examples) + " in one validation batch; the last one may have fewer")
      .at_least(1);
  s.add(at + ".val_micro_batch_size", kInt, "1", std::string("of those, ") + d.examples + " in one micro-batch")
      .at_least(1);
  s.add(at + ".val_at_start", kBool, d.val_at_start, "validate before the first step");
  s.add(at + ".val_at_end", kBool, "false", "validate after the last step");
  s.add(at + ".seed", kInt, "42", "seed of the data's order and of the validation split").at_least(0);
  s.add(at + ".max_nonfinite_steps", kInt, "5",
        "stop after so many steps in a row that were skipped because the loss or the gradient was not finite")
      .at_least(1);
}

}  // namespace

// Defaults: NeMo-RL's sft.yaml, dpo.yaml and rm.yaml.
void add_supervised(Schema& s) {
  s.section("sft", "supervised fine-tuning, in the place of grpo", kMap | kNull);
  add_course(s, "sft", {"1", "60", "10", "8", "32", "true", "conversations"});
  s.add("sft.only_unmask_final", kBool, "false",
        "train on the last message alone, not on every one of the assistant's");
  s.section("dpo", "direct preference optimization, in the place of grpo", kMap | kNull);
  add_course(s, "dpo", {"1", "150", "25", "8", "8", "true", "pairs"});
  s.section("rm", "training a reward model from preferences (Bradley-Terry), in the place of grpo", kMap | kNull);
  add_course(s, "rm", {"1", "-1", "16", "-1", "32", "false", "pairs"});
}

}  // namespace hexad::config
