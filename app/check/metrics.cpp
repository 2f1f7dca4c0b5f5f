// The metrics that a run would rank its checkpoints by, and stop at.
#include <algorithm>

#include "app/check/findings.hpp"
#include "core/algorithm/run/preflight.hpp"
#include "core/algorithm/supervised/supervised.hpp"
#include "core/config/load/defaults.hpp"
#include "core/data/dataset/dataset.hpp"
#include "core/environment/environment.hpp"
#include "lib/base/text.hpp"

namespace hexad::cli {
namespace {

using config::RunConfig;
using Names = std::vector<std::string>;

constexpr const char* kKey = "checkpointing.metric_name";

// What each rollout tells, whatever the environment and the generator add (rollout/scoring.cpp, grpo/validation.cpp).
const Names& of_rollouts() {
  static const Names names = {"accuracy",
                              "pass@samples_per_prompt",
                              "fraction_of_samples_properly_ended",
                              "num_problems_in_batch",
                              "generation_lengths",
                              "prompt_lengths",
                              "correct_solution_generation_lengths",
                              "num_invalid_samples",
                              "total_turns",
                              "avg_turns_per_sample",
                              "max_turns_per_sample",
                              "truncation_rate",
                              "natural_termination_rate",
                              "max_turns_reached_rate",
                              "mean_total_tokens_per_sample",
                              "mean_gen_tokens_per_sample",
                              "mean_env_tokens_per_sample",
                              "max_gen_tokens_per_sample",
                              "mean_prompt_length",
                              "total_num_tokens"};
  return names;
}

bool is_grpo(const RunConfig& run) { return run.algorithm == config::Algorithm::grpo; }

Names names_of_validation(const RunConfig& run) {
  if (!is_grpo(run)) return algorithm::validation_metrics(run.algorithm);
  Names names = of_rollouts();
  names.emplace_back("avg_length");
  if (run.grpo.val_num_generations_per_prompt > 1) names.emplace_back("pass_k");
  return names;
}

Names with_prefix(const Names& names, const std::string& prefix) {
  Names all;
  for (const std::string& name : names) all.push_back(prefix + name);
  return all;
}

// Rewards of the engine's own report nothing; a program, a file, a plugin or a sum may tell anything.
bool rewards_are_built_in(const RunConfig& run) {
  const std::map<std::string, std::string> known = environment::environment_names();
  const auto is_built_in = [&](const config::DatasetConfig& set) {
    const auto section = run.env.find(set.env_name);
    if (section == run.env.end() || !section->second.is_object()) return known.contains(set.env_name);
    const nlohmann::ordered_json type = section->second.value("type", nlohmann::ordered_json(set.env_name));
    const bool is_other = std::ranges::any_of(Names{"command", "python", "plugin", "rewards"},
                                              [&](const std::string& key) { return section->second.contains(key); });
    return !is_other && type.is_string() && known.contains(type.get<std::string>());
  };
  return std::ranges::all_of(run.data.train, is_built_in) && std::ranges::all_of(run.data.validation, is_built_in);
}

// `name` without "val:" is that of a metric of validation. One that is none of `known` is refused where all are known,
// or where it is one of them misspelt.
void check_known(StartFindings& found, const std::string& key, const std::string& name, const Names& known) {
  if (std::ranges::find(known, name) != known.end()) return;
  const std::string why = algorithm::unknown_metric(name, known);
  if (!is_grpo(found.run)) return found.error(key, why);
  if (!nearest(name, known)) return;
  if (rewards_are_built_in(found.run))
    found.error(key, why);
  else
    found.notice(key, why + ", and what rewards and generators report");
}

bool validates(const RunConfig& run) {
  const auto has_rows = [](const config::DatasetConfig& set) {  // what is made may be made for validation too
    return set.split_validation_size > 0 || data::is_generated(set);
  };
  if (run.data.validation.empty() && std::ranges::none_of(run.data.train, has_rows)) return false;
  const config::GrpoConfig& grpo = run.grpo;
  const config::SupervisedConfig& supervised = run.supervised;
  return is_grpo(run) ? grpo.val_period > 0 || grpo.val_at_start || grpo.val_at_end
                      : supervised.val_period > 0 || supervised.val_at_start || supervised.val_at_end;
}

void check_ranking(StartFindings& found, const std::string& metric) {
  const std::string block = config::name_of(found.run.algorithm), of_validation = "val:", of_training = "train:";
  const yaml::Node* written = found.loaded.root.find(kKey);
  if (metric.starts_with(of_training)) {
    const Names known = with_prefix(of_rollouts(), of_training);
    if (is_grpo(found.run) && std::ranges::find(known, metric) == known.end() && nearest(metric, known))
      found.notice(kKey, fmt::format("got '{}', which may be in no step{}", metric, did_you_mean(metric, known)));
    return;
  }
  if (!validates(found.run)) {
    if (written && written->location().file != config::kDefaultOrigin && found.run.checkpointing.keep_top_k)
      found.notice(kKey, fmt::format("got '{}', and there is no validation (data.validation, {}.val_period): no "
                                     "checkpoint is ranked, and the newest are kept. Validate, or set it to null",
                                     metric, block));
    return;
  }
  Names known = with_prefix(names_of_validation(found.run), of_validation);
  if (config::has_pairs(found.run.algorithm))  // NeMo-RL's name where validation sets have one each
    std::ranges::move(with_prefix(names_of_validation(found.run), "val:validation-default_"),
                      std::back_inserter(known));
  check_known(found, kKey, metric, known);
}

}  // namespace

void check_metrics(StartFindings& found) {
  const config::CheckpointingConfig& saving = found.run.checkpointing;
  if (saving.enabled && saving.metric_name) check_ranking(found, *saving.metric_name);
  const std::optional<std::string>& stop = found.run.grpo.stop_at_validation_metric;
  if (is_grpo(found.run) && stop && validates(found.run))
    check_known(found, "grpo.stop_at_validation_metric", *stop, names_of_validation(found.run));
}

}  // namespace hexad::cli
