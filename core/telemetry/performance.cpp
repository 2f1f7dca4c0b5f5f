#include "core/telemetry/performance.hpp"

namespace hexad::telemetry {

Metrics performance_metrics(const Metrics& seconds, const StepSize& size) {
  const auto time = [&](const char* name) {
    const auto found = seconds.find(name);
    return found == seconds.end() ? 0.0 : found->second;
  };
  Metrics metrics;
  const double devices = static_cast<double>(size.devices), tokens = static_cast<double>(size.total_tokens);
  const auto rate = [&](const std::string& name, double amount, double elapsed) {
    if (elapsed <= 0) return;
    metrics[name] = amount / elapsed;
    metrics[name + "_per_gpu"] = amount / elapsed / devices;
  };
  const double total = time("total_step_time"), training = time("policy_training"),
               logprobs = time("policy_and_reference_logprobs");
  rate("samples_per_sec", static_cast<double>(size.samples), total);
  rate("tokens_per_sec", tokens, total);
  rate("valid_tokens_per_sec", size.valid_tokens, total);
  rate("policy_training_tokens_per_sec", tokens, training);
  rate("policy_and_reference_logprobs_tokens_per_sec", tokens, logprobs);
  rate("training_worker_group_tokens_per_sec", tokens, training + logprobs);
  rate("generation_tokens_per_sec", tokens, time("generation"));
  return metrics;
}

}  // namespace hexad::telemetry
