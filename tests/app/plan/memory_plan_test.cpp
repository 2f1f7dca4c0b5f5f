// What a rank holds in each phase, from the facts of manifests.
#include "tests/app/plan/planned.hpp"

using namespace plan_test;

TEST_CASE("the phases of a GRPO run add up what backend and generator state") {
  const MemoryPlan plan = memory_plan(planned(backend_facts(), generator_facts()));
  CHECK(plan.held.sum() == 16 * kKiB);
  const Phase& training = phase_of(plan, "training");
  CHECK(training.parts == std::vector<Part>{{"gradients", 4096},
                                            {"optimizer", 8192},
                                            {"parameters", 4096},
                                            {"activations", 1024 * 4 * 32},
                                            {"generator_weights", 2048}});
  CHECK(training.unknown.empty());
  // Outside of training there are no gradients, by the backend's word.
  CHECK(phase_of(plan, "log-probs").sum() == (12 + 2 + 2) * kKiB);
  CHECK(phase_of(plan, "refit").sum() == (12 + 4) * kKiB);
  CHECK(phase_of(plan, "generation").sum() == (12 + 2 + 1024) * kKiB);
  CHECK(plan.worst()->name == "generation");
}

TEST_CASE("a cache takes its share of what is free, where the room is known") {
  const MemoryPlan plan = memory_plan(planned(backend_facts(), generator_facts()), 114 * kKiB);
  CHECK(phase_of(plan, "generation").parts.back() == Part{"kv_cache", 50 * kKiB});
  CHECK(plan.worst()->name == "training");
}

TEST_CASE("ranks that generate alone hold nothing of the backend") {
  const MemoryPlan plan =
      memory_plan(planned(backend_facts(), generator_facts(),
                          {"++cluster.gpus_per_node=2", "++policy.generation.colocated.enabled=false",
                           "++policy.generation.colocated.resources.gpus_per_node=1"}));
  CHECK(phase_of(plan, "generation").sum() == (2 + 1024) * kKiB);
  CHECK(phase_of(plan, "training").sum() == (16 + 128) * kKiB);
}

TEST_CASE("what a plugin does not state is not known, and never 0") {
  const MemoryPlan plan = memory_plan(planned(nullptr, nullptr));
  CHECK_FALSE(plan.worst());
  CHECK(phase_of(plan, "training").unknown ==
        std::vector<std::string>{
            "weights, gradients and optimizer states: not known, for 'theirs' states no bytes of this configuration",
            "activations: not known, for 'theirs' states no training_bytes of this configuration",
            "what the generator keeps meanwhile: not known, for 'draws' states no asleep_bytes of this configuration"});
  Json facts = backend_facts();
  facts["training_bytes"] = {{"activations", "model.no_such"}};
  CHECK(phase_of(memory_plan(planned(facts, generator_facts())), "training").unknown.size() == 1);
  facts["training_bytes"] = {{"activations", "-1"}};
  CHECK(phase_of(memory_plan(planned(facts, generator_facts())), "training").unknown.size() == 1);
}

TEST_CASE("a run without rollouts has no generator's phases") {
  const MemoryPlan plan = memory_plan(planned(backend_facts(), nullptr, {"~grpo", "++sft.max_num_steps=1"}));
  REQUIRE(plan.phases.size() == 1);
  CHECK(plan.phases[0].name == "training");
  CHECK(plan.phases[0].unknown.empty());
}

TEST_CASE("a resolved configuration gives the same plan") {
  const Loaded loaded = planned(backend_facts(), generator_facts());
  const MemoryPlan plan = memory_plan(loaded), again = memory_plan(loaded_again(loaded.root));
  REQUIRE(again.phases.size() == plan.phases.size());
  for (size_t i = 0; i < plan.phases.size(); ++i) CHECK(again.phases[i].parts == plan.phases[i].parts);
}
