// Who judges the samples.
#include <algorithm>

#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

const char* const kShares = "actor_train.data_args.domain_interleave_probs";

struct Worker {
  const char *name, *capability, *advice;
};

constexpr const char* kOwnReward = "; nearest: a reward program, or a plugin's environment (docs/rewards.md)";

// Workers of ROLL's without a counterpart, by the last part of their names.
constexpr Worker kWorkers[] = {
    {"CodeSandboxRewardWorker", "a reward that runs code (CodeSandboxRewardWorker)", kOwnReward},
    {"LLMJudgeRewardWorker", "a reward by a model that judges (LLMJudgeRewardWorker)",
     "; nearest: a reward program that asks a server, or a plugin's environment (docs/rewards.md)"},
    {"GeneralRuleRewardWorker", "a reward by IFEval's instructions (GeneralRuleRewardWorker)", kOwnReward},
    {"CrossThinkQARuleRewardWorker", "a reward by CrossThinkQA's rule (CrossThinkQARuleRewardWorker)", kOwnReward},
    {"DetectionRewardWorker", kMedia, ""},
    {"VideoR1RewardWorker", kMedia, ""},
};

// The environment that does what a ROLL reward worker does; a name without dots is an environment's own.
std::optional<std::string> environment_of(const std::string& worker) {
  const std::string name = worker.substr(worker.rfind('.') + 1);
  if (name == "MathRuleRewardWorker") return "math";
  if (name == worker && !name.ends_with("RewardWorker")) return name;
  return std::nullopt;
}

void refuse_worker(Pass& p, const std::string& key, const std::string& worker) {
  const std::string name = worker.substr(worker.rfind('.') + 1);
  const auto known = std::ranges::find(kWorkers, name, &Worker::name);
  if (known != std::end(kWorkers)) return p.file.missing(key, known->capability, known->advice);
  p.file.missing(key, worker.empty() ? "a reward without worker_cls" : "the reward " + name,
                 "; nearest: MathRuleRewardWorker, or the name of an environment (exact_answer, last_number, math, or "
                 "a plugin's)");
}

// Domains that prompts are drawn from: those of domain_interleave_probs, else all.
std::vector<std::string> used_domains(Pass& p, const yaml::Node& rewards) {
  std::vector<std::string> result;
  const yaml::Node* shares = p.file.given(kShares);
  for (const auto& [name, value] : shares && shares->is_map() ? shares->entries() : rewards.entries()) {
    if (shares && value.is_number() && value.as_double() == 0) continue;
    result.push_back(name);
  }
  return result;
}

// Prompts of one environment are drawn from all rows alike; of several, nobody here could tell whose a row is.
void check_domains(Pass& p, const std::vector<std::string>& domains, const std::vector<std::string>& judges) {
  if (judges.size() > 1) {
    for (const std::string& domain : domains) {
      p.file.missing("rewards." + domain + ".worker_cls", "a reward chosen by the tag of a row",
                     "; nearest: a file for each reward, with the rows of its tags");
    }
  } else if (domains.size() > 1 && p.file.section(kShares)) {
    p.file.notice(kShares, "shares are not kept: prompts are drawn from all rows of the files alike");
  }
}

}  // namespace

std::optional<std::string> translate_rewards(Pass& p) {
  const yaml::Node* rewards = p.file.section("rewards");
  if (!rewards || !rewards->is_map() || rewards->entries().empty()) {
    p.file.error("rewards",
                 "is missing: name who judges the samples, e.g. rewards: {math_rule: {worker_cls: "
                 "MathRuleRewardWorker}}");
    return std::nullopt;
  }
  std::vector<std::string> domains, workers, environments;
  for (const std::string& domain : used_domains(p, *rewards)) {
    if (!rewards->child(domain)) {
      p.file.error(kShares, fmt::format("there is no rewards.{}", domain));
      continue;
    }
    const std::string key = "rewards." + domain + ".worker_cls", worker = p.file.text(key).value_or("");
    const std::optional<std::string> name = environment_of(worker);
    if (!name) refuse_worker(p, key, worker);
    domains.push_back(domain);
    const std::string judge = name.value_or(worker);
    if (std::ranges::find(workers, judge) != workers.end()) continue;
    workers.push_back(judge);
    if (!name) continue;
    environments.push_back(*name);
    p.set("env." + *name, yaml::Node::Map{}, key);
  }
  check_domains(p, domains, workers);
  return environments.size() == 1 && workers.size() == 1 ? std::optional(environments[0]) : std::nullopt;
}

}  // namespace hexad::config::roll
