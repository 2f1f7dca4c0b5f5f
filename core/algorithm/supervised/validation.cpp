#include "core/algorithm/supervised/validation.hpp"

#include <limits>

namespace hexad::algorithm {
namespace {

Validation over_conversations(const std::vector<Metrics>& batches) {
  double sum = 0;
  for (const Metrics& batch : batches) sum += batch.at("loss");
  return {.metrics = {{"val_loss", sum / static_cast<double>(batches.size())}}};
}

// The means over the valid pairs of all batches, as NeMo-RL's validate_one_dataset.
Validation over_pairs(const std::vector<Metrics>& batches) {
  Validation result{.prefix = "validation-default", .metrics = {}};
  const char* const count = "num_valid_samples";
  double pairs = 0;
  for (const Metrics& batch : batches) pairs += batch.at(count);
  for (const char* name :
       {"loss", "sft_loss", "preference_loss", "accuracy", "rewards_chosen_mean", "rewards_rejected_mean"}) {
    if (!batches[0].contains(name)) continue;
    double sum = 0;
    for (const Metrics& batch : batches) sum += batch.at(name) * batch.at(count);
    result.metrics[name] = pairs > 0 ? sum / pairs : std::numeric_limits<double>::quiet_NaN();
  }
  result.metrics[count] = pairs;
  return result;
}

}  // namespace

void add_reference_logprobs(Supervised& run, data::Batch& batch) {
  batch.set("reference_policy_logprobs", run.policy.logprobs(batch, cluster::Weights::reference), data::Axis::token);
}

Validation validate(Supervised& run) {
  std::vector<Metrics> batches;
  for (const data::Batch& examples : run.examples.validation()) {
    data::Batch batch = examples;
    if (run.config.algorithm == config::Algorithm::dpo) add_reference_logprobs(run, batch);
    batches.push_back(run.policy.evaluate(batch, run.config.supervised.val_micro_batch_size));
  }
  return has_pairs(run.config.algorithm) ? over_pairs(batches) : over_conversations(batches);
}

}  // namespace hexad::algorithm
