#include "core/algorithm/supervised.hpp"

#include <limits>

namespace hexad::algorithm {
namespace {

Course supervised_course(const Supervised& run) {
  const config::SupervisedConfig& config = run.config.supervised;
  Course course;
  course.block = name_of(run.config.algorithm);
  course.steps_per_epoch = run.examples.steps_per_epoch();
  course.last_step = config.max_num_epochs * course.steps_per_epoch;
  if (config.max_num_steps >= 0) course.last_step = std::min(course.last_step, config.max_num_steps);
  course.examples_per_step = run.config.policy.train_global_batch_size;
  course.val_period = config.val_period;
  course.val_at_start = config.val_at_start;
  course.val_at_end = config.val_at_end;
  course.max_nonfinite_steps = config.max_nonfinite_steps;
  return course;
}

Validation validate_examples(Supervised& run, telemetry::Timer& timer, const Objective& objective) {
  if (run.examples.validation().empty()) return {};
  const auto time = timer.measure("validation");
  std::vector<Metrics> batches;
  for (const data::Batch& examples : run.examples.validation()) {
    data::Batch batch = examples;
    if (objective.prepare) objective.prepare(batch);
    batches.push_back(run.policy.evaluate(batch, run.config.supervised.val_micro_batch_size));
  }
  return objective.summarize(batches);
}

}  // namespace

Ending supervised_train(Supervised& run, const Objective& objective) {
  telemetry::Timer timer;
  RunBook book(run, timer, supervised_course(run), [&] { return validate_examples(run, timer, objective); });
  while (!book.is_over()) {
    TrainingStep step;
    step.number = book.begin();
    telemetry::StepSize size;
    Ending ending;
    {
      const auto total = timer.measure("total_step_time");
      data::Batch batch;
      {
        const auto time = timer.measure("data_processing");
        batch = run.examples.next();
      }
      if (batch.size() == 0) break;
      if (objective.prepare) {
        const auto time = timer.measure("policy_and_reference_logprobs");
        objective.prepare(batch);
      }
      {
        const auto time = timer.measure("policy_training");
        step.trained = run.policy.train(batch, run.schedule.rate(), run.schedule.weight_decay());
      }
      size.samples = batch.size();
      size.total_tokens = batch.tokens();
      step.metrics["total_num_tokens"] = static_cast<double>(batch.tokens());
      ending = book.close(step, run.examples.state());
    }
    book.report(step, size);
    if (ending != Ending::finished) return ending;
  }
  book.finish(run.examples.state());
  return Ending::finished;
}

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

}  // namespace hexad::algorithm
