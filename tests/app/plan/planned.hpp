// Configurations whose backend and generator are manifests that a test makes up.
#pragma once
#include "app/plan/check.hpp"
#include "app/plan/memory_plan.hpp"
#include "app/plan/table.hpp"
#include "tests/config/support.hpp"
#include "tests/plugin/plugin_folder.hpp"

namespace plan_test {

using namespace hexad::plan;
using hexad::config::Loaded;
using plugin_test::Json;

constexpr int64_t kKiB = 1 << 10;

// Facts of a backend: of one parameter's bytes each, and 10 bytes a token of a micro-batch.
inline Json backend_facts() {
  return {{"bytes",
           {{"parameters", "4096"}, {"gradients", "4096"}, {"optimizer", "8192 if theirs.offload != true else 0"}}},
          {"training_bytes", {{"activations", "1024 * train_micro_batch_size * max_total_sequence_length"}}},
          {"logprob_bytes", {{"gradients", "0"}, {"head", "1024 * logprob_batch_size"}}},
          {"memory_keys", {{"theirs.offload", "true"}, {"theirs.odd", "true"}, {"theirs.same", "theirs.same"}}}};
}

inline Json generator_facts() {
  return {{"generation_bytes", {{"generator_weights", "2048"}}},
          {"cache_bytes", "1048576"},
          {"cache_share", "0.5"},
          {"asleep_bytes", {{"generator_weights", "2048"}}},
          {"refit_bytes", {{"generator_weights", "2048"}, {"arriving_weights", "2048"}}}};
}

// A GRPO run of both with these overrides; null facts: the manifest has none.
inline Loaded planned(const Json& backend, const Json& generator, std::vector<std::string> overrides = {}) {
  static plugin_test::PluginFolder folder;
  Json config = {
      {"keys",
       {{"theirs", {{"type", "map"}, {"meaning", "its keys"}}},
        {"theirs.offload", {{"type", "bool"}, {"default", false}, {"meaning", "states elsewhere"}}},
        {"theirs.odd", {{"type", "bool"}, {"default", false}, {"meaning", "refused"}}},
        {"theirs.same", {{"type", "int"}, {"default", 1}, {"meaning", "stays"}}}}},
      {"rules", {{{"require", "theirs.odd != true"}, {"key", "theirs.odd"}, {"message", "is never right"}}}}};
  if (!backend.is_null()) config["facts"] = backend;
  folder.write_manifest(folder.path() / "libtheirs.so", "theirs", {{"kind", "backend"}, {"config", config}});
  Json of_generator = {{"keys", Json::object()}};
  if (!generator.is_null()) of_generator["facts"] = generator;
  folder.write_manifest(folder.path() / "libdraws.so", "draws", {{"kind", "generator"}, {"config", of_generator}});
  const config_test::Files files("a.yaml", config_test::kValid);
  std::vector<std::string> all = {"++policy.backend=theirs",
                                  "++policy.generation.backend=draws",
                                  "++plugins.paths=[" + folder.path().string() + "]",
                                  "++policy.train_micro_batch_size=4",
                                  "++policy.logprob_batch_size=2",
                                  "++policy.max_total_sequence_length=32"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return hexad::config::load_with_defaults(files / "a.yaml", all);
}

inline const Phase& phase_of(const MemoryPlan& plan, const std::string& name) {
  for (const Phase& phase : plan.phases)
    if (phase.name == name) return phase;
  FAIL("no phase " << name);
  return plan.phases.front();
}

}  // namespace plan_test
