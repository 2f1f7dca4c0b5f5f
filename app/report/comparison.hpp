// Several runs next to each other as text.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hexad::report {

// The metrics by which runs are compared, here and in the page.
inline constexpr std::array kCompared = {"train/reward",
                                         "validation/accuracy",
                                         "validation/pass_k",
                                         "train/loss",
                                         "validation/val_loss",
                                         "validation-default/loss",
                                         "validation-default/accuracy",
                                         "train/mean_gen_tokens_per_sample",
                                         "train/token_mult_prob_error",
                                         "train/gen_kl_error",
                                         "train/approx_entropy",
                                         "train/grad_norm",
                                         "train/truncation_rate",
                                         "timing/train/total_step_time",
                                         "performance/tokens_per_sec"};

// The runs by number, then a table of what they came to (means of the last 10 steps; of validation the last value),
// then, of two or more, the settings that differ. No line is wider than 80 columns, but for the directories: they are
// to be copied.
std::string comparison(const std::vector<RunRecord>& runs);

// For each folder that a run goes on from, that it does, and whether with other settings.
std::vector<std::string> resumptions(const RunRecord& run);

}  // namespace hexad::report
