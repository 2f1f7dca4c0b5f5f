#include "app/plan/advice.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/plan/memory_plan.hpp"
#include "app/plan/room.hpp"
#include "core/config/declaration/declared_rules.hpp"
#include "lib/base/text.hpp"

namespace hexad::plan {
namespace {

using yaml::Node;

struct Candidate {
  std::string key;
  Node value;
};

// The engine's own keys that say how much is computed at once.
constexpr const char* kSizes[] = {
    "policy.train_micro_batch_size",           "policy.logprob_batch_size",
    "policy.sequence_packing.train_mb_tokens", "policy.sequence_packing.logprob_mb_tokens",
    "policy.dynamic_batching.train_mb_tokens", "policy.dynamic_batching.logprob_mb_tokens",
    "policy.max_total_sequence_length"};

void add_sizes(const Node& root, std::vector<Candidate>& candidates) {
  for (const char* key : kSizes) {
    const Node* value = root.find(key);
    if (value && value->is_int() && value->as_int() > 1)
      candidates.push_back({key, Node(Node::Value(value->as_int() / 2))});
  }
}

// A value that a plugin names, where it is one that a key can have.
std::optional<Node> node_of(const expression::Value& value) {
  if (const bool* truth = std::get_if<bool>(&value.data)) return Node(Node::Value(*truth));
  if (const int64_t* whole = std::get_if<int64_t>(&value.data)) return Node(Node::Value(*whole));
  if (const double* real = std::get_if<double>(&value.data)) return Node(Node::Value(*real));
  if (const std::string* text = std::get_if<std::string>(&value.data)) return Node(Node::Value(*text));
  return std::nullopt;
}

void add_stated(const config::Loaded& loaded, const config::Chosen& chosen, std::vector<Candidate>& candidates) {
  if (!chosen.declaration()) return;
  const config::World world = config::world_of(loaded.root);
  const config::Scope scope(loaded.root, chosen.block, world, loaded.model);
  const auto values = config::fact_values(*chosen.declaration(), "memory_keys", scope);
  if (!values) return;
  for (const auto& [name, value] : *values) {
    const bool absolute = name.starts_with("run.");
    const std::string key = absolute ? name.substr(4) : chosen.block + "." + name;
    const std::optional<Node> node = node_of(value);
    const Node* now = loaded.root.find(key);
    if (node && !(now && yaml::same_value(*now, *node))) candidates.push_back({key, *node});
  }
}

size_t errors_of(const config::Loaded& loaded) {
  return static_cast<size_t>(std::ranges::count_if(config::check(loaded), &config::Problem::is_error));
}

// The configuration with another value; the libraries that check plugins' texts are not asked again.
config::Loaded with(const config::Loaded& loaded, const Candidate& candidate) {
  config::Loaded changed = loaded;
  changed.root.set(candidate.key, Node(candidate.value.value(), {"advice"}));
  changed.facts = config::read_facts(changed.root, changed.selection, config::world_of(changed.root), changed.model,
                                     changed.problems);
  return changed;
}

std::optional<int64_t> bytes_of(const config::Loaded& loaded, std::optional<int64_t> room, Of of) {
  const MemoryPlan plan = memory_plan(loaded, room);
  if (of == Of::held) return plan.held.unknown.empty() ? std::optional(plan.held.sum()) : std::nullopt;
  const Phase* worst = plan.worst();
  return worst ? std::optional(worst->sum()) : std::nullopt;
}

}  // namespace

std::vector<Saving> best_savings(const config::Loaded& given, std::optional<int64_t> room, size_t most, Of of) {
  config::Loaded loaded = given;
  for (config::Chosen* chosen : {&loaded.selection.backend, &loaded.selection.generator, &loaded.selection.loss})
    chosen->library = nullptr;
  for (config::Chosen& environment : loaded.selection.environments) environment.library = nullptr;
  const std::optional<int64_t> before = bytes_of(loaded, room, of);
  if (!before) return {};
  std::vector<Candidate> candidates;
  add_stated(loaded, loaded.selection.backend, candidates);
  add_stated(loaded, loaded.selection.generator, candidates);
  add_sizes(loaded.root, candidates);
  const size_t wrong = errors_of(loaded);
  std::vector<Saving> savings;
  for (const Candidate& candidate : candidates) {
    const config::Loaded changed = with(loaded, candidate);
    const std::optional<int64_t> after = bytes_of(changed, room, of);
    if (!after || *after >= *before || errors_of(changed) > wrong) continue;
    savings.push_back({candidate.key, candidate.value.to_json().dump(), *before - *after});
    if (candidate.value.is_string()) savings.back().value = candidate.value.as_string();
  }
  std::ranges::stable_sort(savings, std::greater<>(), &Saving::bytes);
  savings.resize(std::min(savings.size(), most));
  return savings;
}

std::string text_of(const std::vector<Saving>& savings) {
  std::vector<std::string> texts;
  for (const Saving& saving : savings)
    texts.push_back(fmt::format("{}={} (saves {})", saving.key, saving.value, bytes_text(saving.bytes)));
  return joined(texts);
}

}  // namespace hexad::plan
