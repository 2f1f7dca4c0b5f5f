#include "core/algorithm/evaluate.hpp"

#include <filesystem>
#include <fstream>

#include "core/algorithm/consensus_at_k.hpp"
#include "core/algorithm/inference.hpp"
#include "core/algorithm/pass_at_k.hpp"
#include "core/algorithm/train_run.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/cluster/start_workers.hpp"
#include "core/rollout/prompts.hpp"
#include "core/rollout/rollout.hpp"
#include "core/telemetry/console.hpp"

namespace hexad::algorithm {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// eval.save_path as it fills.
class Saved {
 public:
  Saved(const fs::path& folder, const std::string& config) : folder_(folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    std::ofstream(folder / "config.yaml") << config;
    samples_.open(folder / "samples.jsonl");
    if (!samples_) fail(ErrorKind::data, "eval.save_path: cannot write {}", (folder / "samples.jsonl").string());
  }
  void add(const rollout::Rollout& rollout) {
    for (int64_t i = 0; i < rollout.batch.size(); ++i) {
      const std::optional<std::string>& answer = rollout.answers[static_cast<size_t>(i)];
      samples_ << json_text(Json{{"prompt", rollout.prompts[i]->text},
                                 {"response", rollout.responses[i]},
                                 {"expected_answer", rollout.prompts[i]->answer},
                                 {"answer", answer ? Json(*answer) : Json()},
                                 {"reward", rollout.batch.row<float>("rewards", i)[0]},
                                 {"invalid", rollout.batch.row<uint8_t>("invalid", i)[0] != 0},
                                 {"truncated", rollout.batch.row<uint8_t>("truncated", i)[0] != 0}})
               << '\n';
    }
  }
  void finish(const Evaluation& result) {
    std::ofstream(folder_ / "scores.json") << to_json(result).dump(2) << '\n';
    samples_.close();
    if (!samples_) fail(ErrorKind::data, "eval.save_path: {} could not be written whole", folder_.string());
  }

 private:
  fs::path folder_;
  std::ofstream samples_;
};

std::vector<std::string> environments_of(const std::vector<data::Datum>& prompts) {
  std::set<std::string> names;
  for (const data::Datum& prompt : prompts) names.insert(prompt.env_name);
  return {names.begin(), names.end()};
}

// The samples of one prompt.
std::vector<Vote> votes_of(const rollout::Rollout& rollout, int64_t begin, int64_t tests) {
  const auto rewards = rollout.batch.at("rewards").span<float>();
  const auto invalid = rollout.batch.at("invalid").span<uint8_t>();
  std::vector<Vote> votes;
  for (int64_t i = begin; i < begin + tests; ++i) {
    const std::optional<std::string>& answer = rollout.answers[static_cast<size_t>(i)];
    if (!answer && !invalid[i])
      fail(ErrorKind::config,
           "eval.metric: got cons@k, which counts equal answers, and env.{} tells no answers, only rewards. Ask for "
           "pass@k, or have the environment tell them: built-in ones do, and programs that answer with \"answer\"",
           rollout.prompts[static_cast<size_t>(i)]->env_name);
    votes.push_back({answer.value_or(""), rewards[i] == 1 && !invalid[i]});
  }
  return votes;
}

// Adds what one rollout of whole groups comes to; sums, to be divided by `samples` and `prompts` at the end.
void add(const rollout::Rollout& rollout, const config::EvalConfig& eval, Evaluation& sums) {
  const int64_t tests = eval.num_tests_per_prompt, rows = rollout.batch.size();
  const auto rewards = rollout.batch.at("rewards").span<float>();
  const auto invalid = rollout.batch.at("invalid").span<uint8_t>();
  for (int64_t begin = 0; begin < rows; begin += tests) {
    int64_t right = 0;
    for (int64_t i = begin; i < begin + tests; ++i) {
      right += rewards[i] == 1 && !invalid[i];
      sums.metrics["reward"] += invalid[i] ? 0 : rewards[i];
      sums.metrics["invalid_rate"] += invalid[i];
    }
    for (int64_t k = 1; k <= tests; k *= 2)
      sums.metrics[fmt::format("pass@{}", k)] += static_cast<double>(tests) * pass_at_k(tests, right, k);
    sums.score += eval.metric == "cons@k" ? consensus_at_k(votes_of(rollout, begin, tests), eval.k_value)
                                          : pass_at_k(tests, right, eval.k_value);
    sums.right += right;
    ++sums.prompts;
  }
  for (const char* mean :
       {"mean_gen_tokens_per_sample", "truncation_rate", "mean_prompt_length", "avg_turns_per_sample"})
    sums.metrics[mean] += rollout.metrics.at(mean) * static_cast<double>(rows);
}

}  // namespace

nlohmann::ordered_json to_json(const Evaluation& result) {
  Json json = {{"score", result.score}, {"prompts", result.prompts}, {"right", result.right}};
  for (const auto& [name, value] : result.metrics) json[name] = value;
  return json;
}

Evaluation evaluate(const config::Resolved& resolved, const EvaluateOptions& options) {
  const config::RunConfig run = config::run_config(resolved.root);
  const std::string model_dir = model_directory(run.policy.model_name);
  telemetry::Console console;
  for (const config::Problem& notice : resolved.notices) console.line(notice.text());
  const rollout::ModelText text = rollout::load_model_text(model_dir, run.policy.tokenizer);
  const std::vector<data::Datum> prompts = rollout::evaluation_prompts(run, text.tools());
  plugin::Registry plugins(plugin_options(resolved.root), nullptr);
  const rollout::Environments environments =
      rollout::make_environments(run.env, environments_of(prompts), {plugins, locator(resolved.root)});
  std::optional<Saved> saved;
  if (run.eval.save_path) saved.emplace(*run.eval.save_path, resolved.root.to_yaml());

  const auto workers = start_group(options.program, options.spawner, run);
  cluster::start_workers(*workers, resolved.root, run, {"", "", run.policy.generation.plugin}, model_dir,
                         text.tokenizer_dir);
  rollout::Generation generation(*workers, run.policy.generation.replica_size);
  rollout::Sampling sampling = rollout::sampling_from(run.policy, text.eos_ids);
  if (sampling.temperature == 0) sampling.greedy = true, sampling.temperature = 1;

  Evaluation result;
  const auto all = static_cast<int64_t>(prompts.size());
  const int64_t at_once = run.eval.num_prompts_per_step > 0 ? run.eval.num_prompts_per_step : all;
  for (int64_t begin = 0, step = 0; begin < all; begin += at_once, ++step) {
    std::vector<const data::Datum*> part;
    for (int64_t i = begin; i < std::min(all, begin + at_once); ++i) part.push_back(&prompts[static_cast<size_t>(i)]);
    const rollout::Plan plan{sampling,
                             static_cast<int64_t>(part.size()),
                             run.eval.num_tests_per_prompt,
                             static_cast<uint64_t>(run.eval.seed),
                             step,
                             0,
                             run.grpo.max_rollout_turns};
    const rollout::Rollout rollout = rollout::run_rollout(generation, environments, text, part, plan);
    add(rollout, run.eval, result);
    if (saved) saved->add(rollout);
    console.line(fmt::format("{} of {} prompts: {} {:.4f}", result.prompts, all, run.eval.metric,
                             result.score / static_cast<double>(result.prompts)));
  }
  workers->stop();
  const auto samples = static_cast<double>(result.prompts * run.eval.num_tests_per_prompt);
  for (auto& [name, sum] : result.metrics) sum /= samples;
  result.score /= static_cast<double>(result.prompts);
  if (saved) saved->finish(result);
  return result;
}

}  // namespace hexad::algorithm
