#include "app/data/score.hpp"

#include <algorithm>
#include <set>

#include "app/inference/inference.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "core/config/declaration/catalog.hpp"
#include "core/rollout/rollout.hpp"
#include "core/rollout/scoring.hpp"
#include "lib/base/error.hpp"

namespace hexad::dataset_view {
namespace {

void require_rewards(const config::RunConfig& run) {
  if (run.algorithm != config::Algorithm::grpo)
    fail(ErrorKind::config,
         "--score: {0} has no rewards. Want a configuration of GRPO (a block `grpo`); without --score the rows are "
         "shown",
         name_of(run.algorithm));
}

// Said before a worker starts, as `train` does.
void require_generator(const ScoredRun& run) {
  const config::Catalog catalog(algorithm::plugin_options(run.resolved.root));
  const std::string why = catalog.why_missing(plugin::Kind::generator, run.config.policy.generation.plugin);
  if (!why.empty()) fail(ErrorKind::config, "policy.generation.backend: {}", why);
}

// The environments of a run's rows.
struct Rewards {
  explicit Rewards(const ScoredRun& run) : plugins(algorithm::plugin_options(run.resolved.root), nullptr) {
    std::set<std::string> names;
    for (const auto* list : {&run.config.data.train, &run.config.data.validation})
      for (const config::DatasetConfig& data : *list) names.insert(data.env_name);
    environments = rollout::make_environments(run.config.env, {names.begin(), names.end()},
                                              {plugins, algorithm::locator(run.resolved.root)});
  }
  plugin::Registry plugins;
  rollout::Environments environments;
};

// What the run's generator needs.
struct Model : Rewards {
  Model(const ScoredRun& run, const std::string& program, cluster::Spawner* spawner)
      : Rewards(run),
        workers(inference::start_group(program, spawner, run.config)),
        sampling(rollout::sampling_from(run.config.policy, run.text.eos_ids)) {
    const config::PolicyConfig& policy = run.config.policy;
    // Random weights are the backend's to make, and the run's generator gets them from there.
    const bool random = policy.random_init_seed.has_value();
    cluster::start_workers(*workers, run.resolved.root, run.config,
                           {random ? policy.backend : "", "", policy.generation.plugin},
                           algorithm::find_model(policy.model_name, !random), run.text.tokenizer_dir);
    generation.emplace(*workers, policy.generation.replica_size);
    if (random) generation->refit();
    if (sampling.temperature == 0) sampling.greedy = true, sampling.temperature = 1;
  }
  ~Model() { workers->stop(); }
  std::unique_ptr<cluster::WorkerGroup> workers;
  rollout::Sampling sampling;
  std::optional<rollout::Generation> generation;
  int64_t asked = 0;
};

rollout::Conversation answered(const data::SharedDatum& prompt, const rollout::ModelText& text) {
  rollout::Conversation conversation(prompt, prompt->index);
  const std::vector<int64_t> ids = text.tools().encode(prompt->answer);
  const std::vector<int32_t> tokens(ids.begin(), ids.end());
  const std::vector<float> logprobs(tokens.size());
  const std::vector<int32_t> versions(tokens.size());
  conversation.add_response({tokens, logprobs, versions}, text);
  conversation.response = conversation.text = prompt->answer;  // to the byte, whatever the tokenizer makes of it
  conversation.ended = true;
  return conversation;
}

std::vector<Scored> scored(const rollout::Rollout& rollout) {
  std::vector<Scored> all;
  for (int64_t i = 0; i < rollout.batch.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    Scored& one = all.emplace_back(Scored{.response = rollout.responses[at]});
    if (rollout.batch.row<uint8_t>("invalid", i)[0] == 0) one.reward = rollout.batch.row<float>("rewards", i)[0];
    if (!one.reward) one.why_none = rollout.why_invalid[at];
    for (const auto& [name, values] : rollout.components) one.components[name] = values[at];
  }
  return all;
}

}  // namespace

Scorer expected_answers(const ScoredRun& run) {
  require_rewards(run.config);
  return [run, rewards = std::make_shared<Rewards>(run)](std::span<const data::SharedDatum> prompts) {
    std::vector<rollout::Conversation> conversations;
    for (const data::SharedDatum& prompt : prompts) conversations.push_back(answered(prompt, run.text));
    std::vector<rollout::Conversation*> all;
    for (rollout::Conversation& each : conversations) all.push_back(&each);
    rollout::score(all, rewards->environments, /*step=*/0);
    std::vector<Scored> result;
    for (rollout::Conversation& each : conversations)
      result.push_back({std::move(each.response), each.invalid ? std::nullopt : std::optional(each.reward),
                        std::move(each.why_invalid), std::move(each.components)});
    return result;
  };
}

Scorer generated_answers(const ScoredRun& run, const std::string& program, cluster::Spawner* spawner) {
  require_rewards(run.config);
  require_generator(run);
  return [run, model = std::make_shared<Model>(run, program, spawner)](std::span<const data::SharedDatum> prompts) {
    const rollout::Plan plan{.sampling = model->sampling,
                             .prompts = static_cast<int64_t>(prompts.size()),
                             .samples = 1,
                             .seed = static_cast<uint64_t>(run.config.grpo.seed),
                             .turns = run.config.grpo.max_rollout_turns,
                             .ends_when_truncated = run.config.grpo.truncated_response_ends_sample,
                             .first = std::exchange(model->asked, model->asked + std::ssize(prompts))};
    return scored(rollout::run_rollout(*model->generation, model->environments, run.text,
                                       {prompts.begin(), prompts.end()}, plan));
  };
}

}  // namespace hexad::dataset_view
