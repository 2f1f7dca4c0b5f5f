#include "app/inference/evaluate.hpp"

#include <filesystem>
#include <functional>

#include "app/console/console.hpp"
#include "app/inference/inference.hpp"
#include "app/inference/score_at_k.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "core/plugin/metric_sum.hpp"
#include "core/rollout/prompts.hpp"
#include "core/rollout/rollout.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/append_file.hpp"
#include "lib/base/json.hpp"
#include "lib/yaml/secret.hpp"

namespace hexad::inference {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::string kScore = "score";  // eval.metric over prompts, among the means

// eval.save_path as it fills.
class Saved {
 public:
  Saved(const fs::path& folder, const std::string& config) : folder_(folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail(ErrorKind::data, "eval.save_path: {} cannot be made: {}", folder.string(), error.message());
    write_own_file(folder / "config.yaml", config);
    samples_.emplace(folder / "samples.jsonl");
  }
  // What cannot be written ends no evaluation: finish() says so.
  void add(const rollout::Rollout& rollout) {
    std::string lines;
    for (int64_t i = 0; i < rollout.batch.size(); ++i) {
      const std::optional<std::string>& answer = rollout.answers[static_cast<size_t>(i)];
      lines += json_text(Json{{"prompt", rollout.prompts[i]->text},
                              {"response", rollout.responses[i]},
                              {"expected_answer", rollout.prompts[i]->answer},
                              {"answer", answer ? Json(*answer) : Json()},
                              {"reward", rollout.batch.row<float>("rewards", i)[0]},
                              {"invalid", rollout.batch.row<uint8_t>("invalid", i)[0] != 0},
                              {"truncated", rollout.batch.row<uint8_t>("truncated", i)[0] != 0}}) +
               '\n';
    }
    attempt([&] { samples_->append(lines); });
  }
  // Why it is not all there; empty: it is.
  std::string finish(const Evaluation& result) {
    attempt([&] { write_file(folder_ / "scores.json", json_text(to_json(result), 2) + "\n"); });
    return failure_;
  }

 private:
  void attempt(const std::function<void()>& write) {
    try {
      write();
    } catch (const Error& error) {
      if (failure_.empty()) failure_ = fmt::format("eval.save_path: {}", error.what());
    }
  }

  fs::path folder_;
  std::optional<AppendFile> samples_;
  std::string failure_;
};

// The samples of one prompt that were scored: another says nothing about the model.
std::vector<Vote> votes_of(const rollout::Rollout& rollout, int64_t begin, int64_t end) {
  const auto rewards = rollout.batch.at("rewards").span<float>();
  const auto invalid = rollout.batch.at("invalid").span<uint8_t>();
  std::vector<Vote> votes;
  for (int64_t i = begin; i < end; ++i)
    if (!invalid[i]) votes.push_back({rollout.answers[static_cast<size_t>(i)].value_or(""), rewards[i] == 1});
  return votes;
}

void require_answers(const rollout::Rollout& rollout) {
  const auto invalid = rollout.batch.at("invalid").span<uint8_t>();
  for (size_t i = 0; i < rollout.answers.size(); ++i) {
    if (rollout.answers[i] || invalid[i]) continue;
    fail(ErrorKind::config,
         "eval.metric: got cons@k, which counts equal answers, and env.{} tells no answers, only rewards. Ask for "
         "pass@k, or have the environment tell them: built-in ones do, programs that answer with \"answer\", and "
         "plugins that fill hexad_scores.answers",
         rollout.prompts[i]->env_name);
  }
}

// Means over prompts, and over samples.
using Means = plugin::MetricSum;

void add(Means& means, const std::string& name, double value, double weight = 1) {
  means.add(name, value * weight, weight, plugin::ReduceAs::mean);
}

// Adds what one rollout of whole groups comes to. A prompt with fewer than k scored samples has no score at k.
void add(const rollout::Rollout& rollout, const config::EvalConfig& eval, Means& means, Evaluation& result) {
  const bool consensus = eval.metric == "cons@k";
  if (consensus) require_answers(rollout);
  const auto rewards = rollout.batch.at("rewards").span<float>();
  const auto invalid = rollout.batch.at("invalid").span<uint8_t>();
  const int64_t tests = eval.num_tests_per_prompt, rows = rollout.batch.size();
  for (int64_t i = 0; i < rows; ++i) {
    if (!invalid[i]) add(means, "reward", rewards[i]);
    add(means, "invalid_rate", invalid[i]);
  }
  for (int64_t begin = 0; begin < rows; begin += tests) {
    const std::vector<Vote> votes = votes_of(rollout, begin, begin + tests);
    const auto scored = static_cast<int64_t>(votes.size());
    const int64_t right = std::ranges::count(votes, true, &Vote::right);
    for (int64_t k = 1; k <= scored; k *= 2) add(means, fmt::format("pass@{}", k), pass_at_k(scored, right, k));
    if (eval.k_value <= scored)
      add(means, kScore, consensus ? consensus_at_k(votes, eval.k_value) : pass_at_k(scored, right, eval.k_value));
    result.unscored += eval.k_value > scored;
    result.right += right;
    ++result.prompts;
  }
  for (const char* mean :
       {"mean_gen_tokens_per_sample", "truncation_rate", "mean_prompt_length", "avg_turns_per_sample"})
    add(means, mean, rollout.metrics.at(mean), static_cast<double>(rows));
}

}  // namespace

std::string metric_name(const config::EvalConfig& eval) {
  return eval.metric.substr(0, eval.metric.size() - 1) + std::to_string(eval.k_value);
}

nlohmann::ordered_json to_json(const Evaluation& result) {
  Json json = {{"score", result.score}, {"prompts", result.prompts}, {"right", result.right}};
  if (result.unscored > 0) json["prompts_without_score"] = result.unscored;
  for (const auto& [name, value] : result.metrics) json[name] = value;
  return json;
}

Evaluation evaluate(const config::Resolved& resolved, const EvaluateOptions& options) {
  const config::RunConfig run = config::run_config(resolved);
  const std::string model_dir = algorithm::find_model(run.policy.model_name);
  console::RunConsole console({.waits = false});
  for (const config::Problem& notice : resolved.notices) console.line(notice.text());
  const rollout::ModelText text = rollout::load_model_text(model_dir, run.policy.tokenizer);
  const rollout::LoadedPrompts loaded = rollout::evaluation_prompts(run, text.tools());
  for (const std::string& line : loaded.formats) console.line(line);
  const rollout::PromptSet& prompts = loaded.validation;
  plugin::Registry plugins(algorithm::plugin_options(resolved.root), nullptr);
  const std::vector<std::string> names(prompts.environments.begin(), prompts.environments.end());
  const rollout::Environments environments =
      rollout::make_environments(run.env, names, {plugins, algorithm::locator(resolved.root)});
  std::vector<std::string> notes = rollout::missing_answers(prompts.answers, environments);
  notes.insert(notes.begin(), loaded.notes.begin(), loaded.notes.end());
  notes.push_back(data::too_long_notice(prompts.contents, "prompts", rollout::input_limit(run) - 1, /*scored=*/true));
  for (const std::string& line : notes)
    if (!line.empty()) console.line("note: " + line);
  std::optional<Saved> saved;
  if (run.eval.save_path) saved.emplace(*run.eval.save_path, yaml::without_secrets(resolved.root).to_yaml());

  const auto workers = start_group(options.program, options.spawner, run);
  workers->on_progress([&](int rank, const cluster::protocol::Progress& event) { console.progress(rank, event); });
  cluster::start_workers(*workers, resolved.root, run, {"", "", run.policy.generation.plugin}, model_dir,
                         text.tokenizer_dir);
  rollout::Generation generation(*workers, run.policy.generation.replica_size);
  rollout::Sampling sampling = rollout::sampling_from(run.policy, text.eos_ids);
  if (sampling.temperature == 0) sampling.greedy = true, sampling.temperature = 1;

  Evaluation result;
  Means means;
  const int64_t all = prompts.prompts.size();
  const int64_t at_once = run.eval.num_prompts_per_step > 0 ? run.eval.num_prompts_per_step : all;
  for (int64_t begin = 0; begin < all; begin += at_once) {
    const std::vector<data::SharedDatum> part = prompts.prompts.range(begin, at_once);
    // How many are drawn together changes no sample.
    const rollout::Plan plan{sampling,
                             all,
                             run.eval.num_tests_per_prompt,
                             static_cast<uint64_t>(run.eval.seed),
                             /*step=*/0,
                             /*round=*/0,
                             run.grpo.max_rollout_turns,
                             run.grpo.truncated_response_ends_sample,
                             /*at_once=*/0,
                             /*first=*/begin};
    const rollout::Rollout rollout = rollout::run_rollout(generation, environments, text, part, plan);
    add(rollout, run.eval, means, result);
    result.metrics = means.values();
    result.score = result.metrics.contains(kScore) ? result.metrics.extract(kScore).mapped() : 0;
    if (saved) saved->add(rollout);
    console.line(fmt::format("{} of {} prompts: {} {:.4f}", result.prompts, all, metric_name(run.eval), result.score));
  }
  workers->stop();
  if (result.unscored == result.prompts)
    fail(ErrorKind::worker,
         "rewards: not one of the {} prompts has the {} scored samples that eval.k_value asks for; see why in the log",
         result.prompts, run.eval.k_value);
  if (saved) result.not_saved = saved->finish(result);
  return result;
}

}  // namespace hexad::inference
