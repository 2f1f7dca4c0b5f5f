#include "core/config/schema/blocks.hpp"

namespace hexad::config {

// `generation` and `tokenizer` at the top level are of NeMo-RL's form and come to `policy` (compat/nemo_rl).
void add_eval(Schema& s) {
  s.section("eval", "`hexad eval`: how good a model is at a data set");
  s.add("eval.metric", kText, "pass@k",
        "what is told: the chance that one of k samples is right, or that the answer most of k samples give is")
      .one_of({"pass@k", "cons@k"})
      .not_filled();
  s.add("eval.num_tests_per_prompt", kInt, "1", "samples of every prompt").at_least(1).not_filled();
  s.add("eval.k_value", kInt, "1", "k of the metric: samples that count at once").at_least(1).not_filled();
  s.add("eval.seed", kInt, "42", "seed of the samples").at_least(0).not_filled();
  s.add("eval.num_prompts_per_step", kInt, "-1", "prompts that are drawn at once; -1: all").at_least(-1).not_filled();
  s.add("eval.save_path", kText | kNull, "null",
        "folder for what was drawn (samples.jsonl), its rewards, the scores and the config")
      .not_filled();
}

}  // namespace hexad::config
