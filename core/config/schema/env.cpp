#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_env(Schema& s) {
  s.section("env", "environments: env.<name> holds the arguments of the environment <name>");
  s.section("env.math", "a mathematical answer");
  s.add("env.math.num_workers", kInt, "8", "processes that verify answers")
      .at_least(1)
      .accepted("answers are verified by threads of the controller");
  s.add("env.math.math_verify_impl", kText, "hf_math_verify", "how answers are compared")
      .one_of({"hf_math_verify", "dapo_math_verify"})
      .not_filled();
  s.add("env.math.verifier_type", kText, "math", "what an answer is")
      .one_of({"math", "english_multichoice", "multilingual_multichoice"})
      .read_as("english_multichoice", {"multichoice"},
               "so NeMo-RL 0.3's evaluations name the letter of a choice; of MMLU in other languages it is "
               "multilingual_multichoice")
      .not_filled();
  s.add("env.math.stop_strings", kList | kNull, "null", "texts that end a response")
      .elements(kText)
      .accepted("policy.generation.stop_strings is the key that is read");
  s.add("env.should_use_nemo_gym", kBool, "false", "roll out with NeMo-Gym").unavailable("NeMo-Gym");
  s.add("env.should_log_nemo_gym_responses", kBool, "false", "of NeMo-Gym").dormant();
  s.add("env.nemo_gym", kMap | kNull, "null", "NeMo-Gym's settings").open().dormant();
  s.add("env.should_mask_flagged_samples", kBool, "", "of NeMo-Gym: samples that it flags leave the loss")
      .accepted("only NeMo-Gym flags samples; one that an environment here cannot score is left out anyway");
  s.add("env.*", kMap | kNull, "", "arguments of the environment of this name: docs/rewards.md").open();
}

}  // namespace hexad::config
