#include "core/config/schema/blocks.hpp"

namespace hexad::config {

// What a run trains on where NeMo-RL drops or counts samples wrongly: the default is right, and a key brings NeMo-RL's
// way back, for comparisons with its runs.
void add_compat(Schema& s) {
  s.section("compat", "ways of NeMo-RL's that lose or distort what is trained on; all are off");
  s.add("compat.dynamic_sampling_by_sample", kBool, "false",
        "dynamic sampling with a leave-one-out baseline judges each sample by the rewards of its siblings, so that a "
        "group loses the one sample whose reward differs; false: a group whose rewards differ stays whole")
      .not_filled();
  s.add("compat.filtered_samples_vote", kBool, "false",
        "samples that grpo.overlong_filtering or grpo.seq_logprob_error_threshold leaves out of the loss count in the "
        "baseline and deviation of their group; false: those that train do")
      .not_filled();
}

}  // namespace hexad::config
