#include "core/telemetry/performance.hpp"

namespace hexad::telemetry {

Metrics performance_metrics(const Metrics& seconds, const StepSize& size) {
  const auto time = [&](const char* name) {
    const auto found = seconds.find(name);
    return found == seconds.end() ? 0.0 : found->second;
  };
  Metrics metrics;
  const double tokens = static_cast<double>(size.total_tokens);
  const auto rate = [&](const std::string& name, double amount, double elapsed, int64_t devices) {
    if (elapsed <= 0) return;
    metrics[name] = amount / elapsed;
    metrics[name + "_per_gpu"] = amount / elapsed / static_cast<double>(devices);
  };
  const double total = time("total_step_time"), training = time("policy_training"),
               logprobs = time("policy_and_reference_logprobs");
  rate("samples_per_sec", static_cast<double>(size.samples), total, size.devices);
  rate("tokens_per_sec", tokens, total, size.devices);
  rate("valid_tokens_per_sec", size.valid_tokens, total, size.devices);
  rate("policy_training_tokens_per_sec", tokens, training, size.trainers);
  rate("policy_and_reference_logprobs_tokens_per_sec", tokens, logprobs, size.trainers);
  rate("training_worker_group_tokens_per_sec", tokens, training + logprobs, size.trainers);
  rate("generation_tokens_per_sec", tokens, time("generation"), size.generators);
  return metrics;
}

}  // namespace hexad::telemetry
