// What a step drew, sample by sample, in the run's log folder.
#pragma once
#include "core/algorithm/grpo/grpo.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::algorithm {

// train_data_step<N>.jsonl: texts, tokens, masks, log-probs, advantages; of a part the text of every token too.
void log_samples(const Grpo& run, const rollout::Rollout& rollout, int64_t step);

// val_data_step<N>.jsonl: texts and rewards.
void log_validation(const Grpo& run, const rollout::Rollout& rollout, int64_t step);

}  // namespace hexad::algorithm
