#include <algorithm>

#include "lib/base/error.hpp"
#include "core/environment/environment.hpp"

namespace hexad::environment {
namespace {

struct Mean {
  double sum = 0, count = 0;
  void add(double value) {
    sum += value;
    count += 1;
  }
  double value() const { return count > 0 ? sum / count : 0; }
};

}  // namespace

std::map<std::string, double> environment_metrics(std::span<const Sample> samples, const Scores& scores,
                                                  int64_t samples_per_prompt) {
  if (scores.rewards.size() != samples.size() || scores.invalid.size() != samples.size()) {
    fail(ErrorKind::internal, "environment: {} samples, {} rewards, {} validity flags", samples.size(),
         scores.rewards.size(), scores.invalid.size());
  }
  Mean accuracy, ended, generation, prompt, correct_generation, passed;
  double invalid = 0;
  bool any_right = false, any_valid = false;  // of a prompt's samples so far
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    if (scores.invalid[i]) {
      invalid += 1;
    } else {
      const double reward = sample.truncated ? 0 : scores.rewards[i];
      accuracy.add(reward);
      ended.add(sample.truncated ? 0 : 1);
      generation.add(static_cast<double>(sample.response_tokens));
      prompt.add(static_cast<double>(sample.prompt_tokens));
      if (reward == 1) correct_generation.add(static_cast<double>(sample.response_tokens));
      any_right = any_right || reward > 0;
      any_valid = true;
    }
    if ((static_cast<int64_t>(i) + 1) % samples_per_prompt == 0) {
      if (any_valid) passed.add(any_right ? 1 : 0);
      any_right = any_valid = false;
    }
  }
  std::map<std::string, double> metrics = {{"accuracy", accuracy.value()},
                                           {"pass@samples_per_prompt", passed.value()},
                                           {"fraction_of_samples_properly_ended", ended.value()},
                                           {"num_problems_in_batch", accuracy.count},
                                           {"generation_lengths", generation.value()},
                                           {"prompt_lengths", prompt.value()},
                                           {"correct_solution_generation_lengths", correct_generation.value()}};
  if (invalid > 0) metrics["num_invalid_samples"] = invalid;
  return metrics;
}

}  // namespace hexad::environment
