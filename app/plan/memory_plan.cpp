#include "app/plan/memory_plan.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/config/declaration/declared_rules.hpp"
#include "core/config/declaration/run_schema.hpp"
#include "core/config/load/defaults.hpp"

namespace hexad::plan {
namespace {

constexpr double kMost = 1e18;

// Of a number that can be one of bytes.
std::optional<double> number_of(const expression::Value& value) {
  double number = -1;
  if (const int64_t* whole = std::get_if<int64_t>(&value.data)) number = static_cast<double>(*whole);
  if (const double* real = std::get_if<double>(&value.data)) number = *real;
  return number >= 0 && number < kMost ? std::optional(number) : std::nullopt;
}

// The facts of one plugin.
class Stated {
 public:
  Stated(const config::Loaded& loaded, const config::Chosen& chosen)
      : plugin_(chosen.plugin()),
        declaration_(chosen.declaration()),
        world_(config::world_of(loaded.root)),
        scope_(loaded.root, chosen.block, world_, loaded.model) {}

  // Nothing where the plugin does not state it, or not of this configuration.
  std::optional<std::vector<Part>> parts(const char* fact) const {
    const auto values = declaration_ ? config::fact_values(*declaration_, fact, scope_) : std::nullopt;
    if (!values) return std::nullopt;
    std::vector<Part> parts;
    for (const auto& [name, value] : *values) {
      const std::optional<double> bytes = number_of(value);
      if (!bytes) return std::nullopt;
      parts.push_back({name, static_cast<int64_t>(std::llround(*bytes))});
    }
    return parts;
  }
  std::optional<double> number(const char* fact) const {
    const auto values = declaration_ ? config::fact_values(*declaration_, fact, scope_) : std::nullopt;
    return values && values->contains("") ? number_of(values->at("")) : std::nullopt;
  }
  // "activations: not known, for 'x' does not state training_bytes of this configuration".
  std::string missing(const char* what, const char* fact) const {
    return fmt::format("{}: not known, for {} states no {} of this configuration", what,
                       plugin_.empty() ? "no plugin" : "'" + plugin_ + "'", fact);
  }

 private:
  std::string plugin_;
  const config::Declaration* declaration_;
  config::World world_;
  config::Scope scope_;
};

// Adds the parts of a fact; one of a name that is there stands in its place.
void add(Phase& phase, const Stated& stated, const char* fact, const char* what) {
  const std::optional<std::vector<Part>> parts = stated.parts(fact);
  if (!parts) return phase.unknown.push_back(stated.missing(what, fact));
  for (const Part& part : *parts) {
    const auto there = std::ranges::find(phase.parts, part.name, &Part::name);
    if (there == phase.parts.end())
      phase.parts.push_back(part);
    else
      there->bytes = part.bytes;
  }
}

// What is held while the backend does not train: parts that `logprob_bytes` names again have its numbers.
Phase between_steps(const Phase& held, const Stated& backend) {
  Phase between = held;
  for (const Part& again : backend.parts("logprob_bytes").value_or(std::vector<Part>())) {
    const auto there = std::ranges::find(between.parts, again.name, &Part::name);
    if (there != between.parts.end()) there->bytes = again.bytes;
  }
  return between;
}

void add_cache(Phase& phase, const Stated& generator, std::optional<int64_t> room) {
  const std::optional<double> wanted = generator.number("cache_bytes");
  if (!wanted) return phase.unknown.push_back(generator.missing("cache of keys and values", "cache_bytes"));
  double bytes = *wanted;
  if (const std::optional<double> share = generator.number("cache_share"); room && share)
    bytes = std::min(bytes, *share * std::max(0.0, static_cast<double>(*room - phase.sum())));
  phase.parts.push_back({"kv_cache", static_cast<int64_t>(bytes)});
}

}  // namespace

int64_t Phase::sum() const {
  int64_t sum = 0;
  for (const Part& part : parts) sum += part.bytes;
  return sum;
}

const Phase* MemoryPlan::worst() const {
  const auto most = std::ranges::max_element(phases, {}, &Phase::sum);
  return most == phases.end() || most->parts.empty() ? nullptr : &*most;
}

MemoryPlan memory_plan(const config::Loaded& loaded, std::optional<int64_t> room) {
  MemoryPlan plan;
  const Stated backend(loaded, loaded.selection.backend), generator(loaded, loaded.selection.generator);
  const bool trains = config::trains(loaded.root), samples = trains && loaded.root.has("grpo");
  const bool apart = config::world_of(loaded.root).generate_ranks.value_or(0) > 0;
  add(plan.held, backend, "bytes", "weights, gradients and optimizer states");
  const Phase between = between_steps(plan.held, backend);
  const auto phase = [&](const char* name, const Phase& begins_with) -> Phase& {
    Phase& added = plan.phases.emplace_back(begins_with);
    added.name = name;
    return added;
  };
  const auto computes = [&](const char* name, const char* fact, const char* what) {
    Phase& added = phase(name, plan.held);
    add(added, backend, fact, what);
    if (samples && !apart) add(added, generator, "asleep_bytes", "what the generator keeps meanwhile");
  };
  if (trains) computes("training", "training_bytes", "activations");
  if (samples || (trains && loaded.root.has("dpo"))) computes("log-probs", "logprob_bytes", "what a pass computes");
  if (!samples) return plan;
  add(phase("refit", apart ? Phase() : between), generator, "refit_bytes", "weights on their way to the generator");
  Phase& generation = phase("generation", apart ? Phase() : between);
  add(generation, generator, "generation_bytes", "weights and passes of the generator");
  add_cache(generation, generator, room);
  return plan;
}

config::Loaded on_device(const config::Loaded& loaded, bool on_cards) {
  config::Loaded result = loaded;
  result.root.set("cluster.device", yaml::Node(yaml::Node::Value(std::string(on_cards ? "cuda" : "cpu")), {"plan"}));
  return result;
}

config::Loaded loaded_again(const yaml::Node& root) {
  config::Loaded loaded;
  loaded.root = root;
  loaded.selection = config::select_plugins(loaded.root, std::make_shared<config::Catalog>(loaded.root));
  loaded.schema = config::run_schema(loaded.selection);
  loaded.model = config::model_names(loaded.root);
  loaded.facts =
      config::read_facts(loaded.root, loaded.selection, config::world_of(loaded.root), loaded.model, loaded.problems);
  return loaded;
}

}  // namespace hexad::plan
