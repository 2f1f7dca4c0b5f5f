// performance/*: samples and tokens per second, as NeMo-RL's print_performance_metrics defines them.
#pragma once
#include <cstdint>

#include "core/telemetry/run_log.hpp"

namespace hexad::telemetry {

struct StepSize {
  int64_t samples = 0;                   // prompts * generations
  int64_t total_tokens = 0;              // prompt and response
  double valid_tokens = 0;               // that the loss counted
  int64_t devices = 1;                   // ranks of the run
  int64_t trainers = 1, generators = 1;  // of those; all are both where generation is colocated
};

// From the step's timings (keys of Timer): samples_per_sec_per_gpu, tokens_per_sec_per_gpu,
// policy_training_tokens_per_sec_per_gpu, policy_and_reference_logprobs_tokens_per_sec_per_gpu,
// training_worker_group_tokens_per_sec_per_gpu, generation_tokens_per_sec_per_gpu and the same per group without
// _per_gpu. A time that is missing or 0 leaves its rate out. Source: NeMo-RL, algorithms/utils.py.
Metrics performance_metrics(const Metrics& seconds, const StepSize& size);

}  // namespace hexad::telemetry
