#include "core/algorithm/supervised/supervised.hpp"

#include "core/algorithm/run/loop.hpp"

namespace hexad::algorithm {
namespace {

LoopSettings loop_settings(const Supervised& run) {
  const config::SupervisedConfig& config = run.config.supervised;
  LoopSettings settings;
  settings.block = name_of(run.config.algorithm);
  settings.steps_per_epoch = run.examples.steps_per_epoch();
  settings.last_step = config.max_num_epochs * settings.steps_per_epoch;
  if (config.max_num_steps >= 0) settings.last_step = std::min(settings.last_step, config.max_num_steps);
  settings.examples_per_step = run.config.policy.train_global_batch_size;
  settings.val_period = config.val_period;
  settings.val_at_start = config.val_at_start;
  settings.val_at_end = config.val_at_end;
  settings.max_nonfinite_steps = config.max_nonfinite_steps;
  return settings;
}

// Adds reference_policy_logprobs (f32 [T]), under the policy that the run began with.
void add_reference_logprobs(Supervised& run, data::Batch& batch) {
  batch.set("reference_policy_logprobs", run.policy.logprobs(batch, cluster::Weights::reference), data::Axis::token);
}

// Over all validation batches together, of which there is at least one: the mean loss of SFT's trained tokens, or of
// pairs what they tell, under the names of NeMo-RL's validate_one_dataset.
Validation validate(Supervised& run) {
  const auto complete = [&](data::Batch& batch) {
    if (run.interruption.interrupted > 0) throw Interrupted("interrupted: the validation is given up");
    if (run.config.algorithm == config::Algorithm::dpo) add_reference_logprobs(run, batch);
  };
  const Metrics metrics =
      run.policy.evaluate(run.examples.validation(), run.config.supervised.val_micro_batch_size, complete);
  if (!has_pairs(run.config.algorithm)) return {.metrics = {{"val_loss", metrics.at("loss")}}};
  Validation result{.prefix = "validation-default", .metrics = {}};
  for (const std::string& name : validation_metrics(run.config.algorithm))
    if (metrics.contains(name)) result.metrics[name] = metrics.at(name);
  return result;
}

void validate_if_due(Supervised& run, Loop& loop) {
  if (!loop.is_validation_due() || !run.examples.validates()) return;
  const auto phase = loop.timer().measure("validation");
  try {
    loop.validated(validate(run));
  } catch (const Interrupted& why) {
    loop.give_up(why);
  }
}

}  // namespace

std::vector<std::string> validation_metrics(config::Algorithm algorithm) {
  if (!has_pairs(algorithm)) return {"val_loss"};
  return {"loss",
          "sft_loss",
          "preference_loss",
          "accuracy",
          "rewards_chosen_mean",
          "rewards_rejected_mean",
          "num_valid_samples"};
}

Ending train_supervised(Supervised& run) {
  Loop loop(run, loop_settings(run));
  Timer& timer = loop.timer();
  validate_if_due(run, loop);
  while (!loop.is_over()) {
    Step step(loop.begin());
    auto total = timer.measure("total_step_time");
    auto phase = timer.measure("data_processing");
    data::Batch batch = run.examples.next();
    if (batch.size() == 0) {
      loop.end_early(run.examples.state());
      break;
    }
    // DPO's pi_ref below: the policy that the run began with.
    if (run.config.algorithm == config::Algorithm::dpo) {
      phase = timer.measure("policy_and_reference_logprobs");
      add_reference_logprobs(run, batch);
    }
    // The loss plugin's gradient, in micro-batches, and the optimizer's step.
    // SFT  L = -sum over the assistant's tokens of log pi(token | what came before) / their number
    // DPO  L = -log sigmoid(r(chosen) - r(rejected)) over pairs of answers to one prompt, with the implicit reward
    //      r(y) = beta * (log pi(y) - log pi_ref(y))
    // RM   L = -log sigmoid(s(chosen) - s(rejected)); s is the score that the model's reward head gives a sequence
    phase = timer.measure("policy_training");
    step.trained = run.policy.train(batch, run.schedule.rate(), run.schedule.weight_decay());
    phase.end();
    step.metrics["total_num_tokens"] = static_cast<double>(batch.tokens());
    loop.tell(step, run.examples.too_long());
    loop.count(step, run.examples.state());
    validate_if_due(run, loop);
    if (loop.is_checkpoint_due()) {
      phase = timer.measure("checkpointing");
      loop.save();
      phase.end();
    }
    total.end();
    telemetry::StepSize size;
    size.samples = batch.size(), size.total_tokens = batch.tokens();
    loop.report(step, size);
  }
  if (loop.ending() == Ending::finished) validate_if_due(run, loop);
  loop.finish();
  return loop.ending();
}

}  // namespace hexad::algorithm
