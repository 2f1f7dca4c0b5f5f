#include "compat/roll/missing.hpp"

#include <algorithm>
#include <set>

#include "compat/roll/key_names.hpp"

namespace hexad::config::roll {
namespace {

constexpr std::string_view kPhrase = " is not available in this version";

// Values of which only the capability tells what they are.
struct ValueOf {
  const char *value, *capability;
};
constexpr ValueOf kValues[] = {
    {"gae", kCritic},
    {"gigpo", "an estimator of ROLL's agentic pipeline"},
    {"step_reinforce", "an estimator of ROLL's agentic pipeline"},
    {"agentic_reinforce", "an estimator of ROLL's agentic pipeline"},
    {"topr", kTopr},
    {"seq-mean-token-sum", "a loss that sums the tokens of a sample (seq-mean-token-sum)"},
    {"seq-mean-token-sum-norm", "a loss that sums the tokens of a sample (seq-mean-token-sum-norm)"},
};

struct Capability {
  const char* name;
  std::vector<const char*> details;  // last words of keys that say how, not whether
  const char* advice;
};

const std::vector<Capability>& capabilities() {
  static const std::vector<Capability> table = {
      {kCritic, {"critic", "critic_warmup", "value_clip", "lambd"}, "; nearest: adv_estimator: grpo or reinforce"},
      {kAdapters,
       {"lora_rank", "lora_alpha", "lora_dropout", "autocast_adapter_dtype"},
       "; without these keys all weights are trained"},
      {kTopr, {"topr_positive_weight", "topr_negative_weight"}, "; nearest: pg_variant: ppo"},
      {kMedia, {}, "; prompts and models are of text"},
      {"a filter of samples by reward",
       {"filter_args"},
       "; nearest: hexad: {grpo: {use_dynamic_sampling: true}}, which leaves out groups with equal rewards"},
  };
  return table;
}

const Capability* capability_named(const std::string& name) {
  const auto found = std::ranges::find(capabilities(), name, &Capability::name);
  return found == capabilities().end() ? nullptr : &*found;
}

std::string last_word(const std::string& path) { return path.substr(path.rfind('.') + 1); }

void add_details(const yaml::Node& map, const std::string& path, const std::vector<const char*>& words,
                 std::vector<std::string>& keys) {
  for (const auto& [name, value] : map.entries()) {
    const std::string full = path.empty() ? name : path + "." + name;
    if (value.is_null()) continue;
    if (std::ranges::find(words, name) != words.end()) {
      if (std::ranges::find(keys, full) == keys.end()) keys.push_back(full);
    } else if (value.is_map()) {
      add_details(value, full, words, keys);
    }
  }
}

// The vision or audio part of a model, by its names in ROLL's models.
bool is_media_module(const yaml::Node& value) {
  const auto names_one = [](const yaml::Node& node) {
    if (!node.is_string()) return false;
    const std::string& text = node.as_string();
    return std::ranges::any_of(std::initializer_list<const char*>{"vision", "visual", "audio", "talker"},
                               [&](const char* part) { return text.find(part) != std::string::npos; });
  };
  return value.is_list() ? std::ranges::any_of(value.items(), names_one) : names_one(value);
}

// The line for all of `missing` that are of one capability.
Problem line_of(const std::vector<const Missing*>& missing, const yaml::Node& file, std::set<std::string>& named) {
  const Missing& first = *missing.front();
  const Capability* known = capability_named(first.capability);
  std::vector<std::string> keys;
  std::string advice = known ? known->advice : "";
  for (const Missing* each : missing) {
    if (std::ranges::find(keys, each->key) == keys.end()) keys.push_back(each->key);
    if (advice.empty()) advice = each->advice;
  }
  if (known && !known->details.empty()) add_details(file, "", known->details, keys);
  named.insert(keys.begin(), keys.end());
  return {Problem::Severity::error, first.location, key_names(keys), first.capability + std::string(kPhrase) + advice};
}

// A notice about a key that a line names already, or about the reward that is refused by its worker.
bool is_covered(const std::string& key, const std::set<std::string>& named) {
  return std::ranges::any_of(named, [&](const std::string& other) {
    if (key == other || key.starts_with(other + ".")) return true;
    const bool worker = other.starts_with("rewards.") && last_word(other) == "worker_cls";
    return worker && key.starts_with(other.substr(0, other.rfind('.') + 1));
  });
}

void add_notices(const std::vector<Problem>& problems, const std::set<std::string>& named, std::vector<Problem>& out) {
  std::vector<std::pair<Problem, std::vector<std::string>>> reasons;
  for (const Problem& problem : problems) {
    if (problem.is_error() || is_covered(problem.key, named)) continue;
    auto found = std::ranges::find(reasons, problem.message, [](const auto& each) { return each.first.message; });
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {problem, {}});
    found->second.push_back(problem.key);
  }
  for (auto& [notice, keys] : reasons) {
    notice.key = key_names(keys);
    out.push_back(std::move(notice));
  }
}

}  // namespace

std::optional<Missing> as_missing(const Problem& problem, const Key* key, const yaml::Node* value) {
  const size_t at = problem.is_error() ? problem.message.find(kPhrase) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  Missing missing{problem.location, problem.key, problem.message.substr(0, at), ""};
  if (value && last_word(problem.key) == "freeze_module_prefix" && is_media_module(*value)) missing.capability = kMedia;
  if (key && key->status == Status::unavailable) return missing;
  const auto known = std::ranges::find_if(
      kValues, [&](const ValueOf& each) { return missing.capability == fmt::format("'{}'", each.value); });
  if (known != std::end(kValues)) missing.capability = known->capability;
  missing.advice = problem.message.substr(at + kPhrase.size());
  return missing;
}

std::vector<Problem> in_few_lines(std::vector<Problem> problems, std::vector<Missing> missing, const yaml::Node& file) {
  std::vector<std::pair<std::string, std::vector<const Missing*>>> groups;
  for (const Missing& each : missing) {
    auto found = std::ranges::find(groups, each.capability, [](const auto& group) { return group.first; });
    if (found == groups.end()) found = groups.insert(groups.end(), {each.capability, {}});
    found->second.push_back(&each);
  }
  std::vector<Problem> result;
  for (const Problem& problem : problems) {
    if (problem.is_error()) result.push_back(problem);
  }
  std::set<std::string> named;
  for (const auto& [capability, asking] : groups) result.push_back(line_of(asking, file, named));
  add_notices(problems, named, result);
  return result;
}

}  // namespace hexad::config::roll
