// Prompts and who judges their answers.
#include "compat/roll/pass.hpp"
#include "lib/base/text.hpp"

namespace hexad::config::roll {
namespace {

// The environment that does what a ROLL reward worker does; a name without dots is an environment's own.
std::optional<std::string> environment_of(const std::string& worker) {
  const std::string name = worker.substr(worker.rfind('.') + 1);
  if (name == "MathRuleRewardWorker") return "math";
  if (name == worker && !name.ends_with("RewardWorker")) return name;
  return std::nullopt;
}

// Domains that prompts are drawn from: those of domain_interleave_probs, else all.
std::vector<std::string> used_domains(Pass& p, const yaml::Node& rewards) {
  std::vector<std::string> result;
  const yaml::Node* shares = p.file.given("actor_train.data_args.domain_interleave_probs");
  for (const auto& [name, value] : shares && shares->is_map() ? shares->entries() : rewards.entries()) {
    if (shares && value.is_number() && value.as_double() == 0) continue;
    result.push_back(name);
  }
  return result;
}

// The one environment of all prompts.
std::optional<std::string> set_environment(Pass& p) {
  const yaml::Node* rewards = p.file.section("rewards");
  if (!rewards || !rewards->is_map() || rewards->entries().empty()) {
    p.file.error("rewards",
                 "is missing: name who judges the samples, e.g. rewards: {math_rule: {worker_cls: "
                 "MathRuleRewardWorker}}");
    return std::nullopt;
  }
  std::vector<std::string> environments;
  bool complete = true;
  for (const std::string& domain : used_domains(p, *rewards)) {
    const std::string key = "rewards." + domain + ".worker_cls";
    if (!rewards->child(domain)) {
      p.file.error("actor_train.data_args.domain_interleave_probs", fmt::format("there is no rewards.{}", domain));
      complete = false;
      continue;
    }
    const std::string worker = p.file.text(key).value_or("");
    const std::optional<std::string> name = environment_of(worker);
    if (!name) {
      p.file.error(key,
                   fmt::format("{} is not available in this version; nearest: MathRuleRewardWorker, or the name of an "
                               "environment (exact_answer, last_number, math, or a plugin's)",
                               worker.empty() ? "a reward without worker_cls" : worker));
      complete = false;
    } else if (std::ranges::find(environments, *name) == environments.end()) {
      environments.push_back(*name);
      p.set("env." + *name, yaml::Node::Map{}, key);
    }
  }
  if (!complete) return std::nullopt;
  if (environments.size() > 1) {
    p.file.error("rewards", fmt::format("the domains in use are judged by {}, wanted one environment for all prompts",
                                        joined(environments, " and ")));
    return std::nullopt;
  }
  return environments.empty() ? std::nullopt : std::optional(environments[0]);
}

// Keys of Hexad's datasets that stand among data_args.
bool own_keys(Pass& p, const std::string& at, yaml::Node& dataset) {
  if (!p.file.given(at + "dataset_name")) return false;
  for (const std::string& path : config::core_schema().children("data.train")) {
    const std::string name = path.substr(path.rfind('.') + 1);
    if (const yaml::Node* value = p.file.given(at + name)) dataset.set(name, *value);
  }
  return true;
}

void set_rows(Pass& p, const std::string& role, const std::string& path, const std::string& environment) {
  const std::string at = role + ".data_args.";
  const yaml::Location place = p.file.location(at + "file_name");
  yaml::Node base(yaml::Node::Map{}, place);
  const auto finished = [&](yaml::Node dataset) {
    if (!dataset.child("env_name")) dataset.set("env_name", yaml::Node(environment, place));
    if (!dataset.child("processor")) dataset.set("processor", yaml::Node(std::string("math_hf_data_processor"), place));
    return dataset;
  };
  if (own_keys(p, at, base)) return p.out.set(path, finished(std::move(base)));
  const yaml::Node* files = p.file.given(at + "file_name");
  if (!files || (files->is_list() && files->items().empty())) {
    if (role == "actor_train") p.file.error(at + "file_name", "is missing: name the JSONL files of the prompts");
    return;
  }
  base.set("dataset_name", yaml::Node(std::string("ResponseDataset"), place));
  base.set("data_path", yaml::Node());
  base.set("input_key", yaml::Node(p.file.text(at + "prompt").value_or("prompt"), p.file.location(at + "prompt")));
  base.set("output_key",
           yaml::Node(p.file.text(at + "response").value_or("ground_truth"), p.file.location(at + "response")));
  yaml::Node::List datasets;
  const yaml::Node::List one = {*files};
  for (const yaml::Node& file : files->is_list() ? files->items() : one) {
    yaml::Node dataset = base;
    dataset.set("data_path", file);
    datasets.push_back(finished(std::move(dataset)));
  }
  p.out.set(path, yaml::Node(std::move(datasets), place));
}

void set_template(Pass& p) {
  p.set("policy.tokenizer.chat_template", std::string("default"), "actor_train.data_args.template");
  for (const char* key : {"global_template", "actor_train.data_args.template"}) {
    const std::optional<std::string> name = p.file.text(key);
    if (p.file.given(key) && name && *name != "native") {
      p.file.notice(key, fmt::format("'{}': the chat template of the model's own tokenizer is used", *name));
    }
  }
  p.file.text("actor_infer.data_args.template"), p.file.text("validation.data_args.template");
}

}  // namespace

void translate_data(Pass& p) {
  const std::optional<std::string> environment = set_environment(p);
  set_rows(p, "actor_train", "data.train", environment.value_or("math"));
  if (p.file.section("validation")) set_rows(p, "validation", "data.validation", environment.value_or("math"));
  for (const char* type : {"actor_train.data_args.dataset_type", "validation.data_args.dataset_type"})
    p.file.value(type);
  set_template(p);
}

}  // namespace hexad::config::roll
