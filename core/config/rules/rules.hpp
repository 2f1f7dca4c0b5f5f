// Rules between keys, checked before anything starts. Sources: NeMo-RL's grpo.py setup, ClippedPGLossFn's assertions,
// BatchedDataDict's divisibility.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/algorithm.hpp"
#include "core/config/check.hpp"
#include "lib/yaml/node.hpp"
#include "core/config/typed/run_facts.hpp"
#include "core/config/schema/schema.hpp"
#include "core/config/world.hpp"

namespace hexad::config {

// Reads a configuration that may hold wrong values (they are reported elsewhere): a value of the wrong kind counts as
// absent, and an absent one as its default.
class RuleContext {
 public:
  // `defaults` gives the values of absent keys; `facts` is what the run's plugins say of themselves.
  explicit RuleContext(const yaml::Node& root, const Schema& defaults = core_schema(), RunFacts facts = {})
      : root_(root), defaults_from_(defaults), facts_(std::move(facts)) {}

  const yaml::Node& root() const { return root_; }
  bool flag(const std::string& path) const;
  std::optional<int64_t> integer(const std::string& path) const;
  std::optional<double> number(const std::string& path) const;
  std::optional<std::string> text(const std::string& path) const;
  // The value itself, or its default; null for null.
  const yaml::Node* value(const std::string& path) const;

  // The algorithm, and the key of its block.
  Algorithm algorithm() const { return algorithm_of(root_); }
  std::string block() const { return name_of(algorithm()); }
  const RunFacts& facts() const { return facts_; }
  // The plugin that trains.
  std::string backend() const;
  // The last ranks, which only generate (0: generation is colocated); and those that train. Nothing where a size is no
  // such number, or leaves nobody.
  std::optional<int64_t> generation_ranks() const;
  std::optional<int64_t> training_ranks() const;
  // Data-parallel ranks of that backend; nothing where its manifest does not say how many ranks hold one copy.
  std::optional<int64_t> data_parallel_size() const;

  void error(const std::string& path, std::string message) { add(Problem::Severity::error, path, std::move(message)); }
  void notice(const std::string& path, std::string message) {
    add(Problem::Severity::notice, path, std::move(message));
  }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  void add(Problem::Severity severity, const std::string& path, std::string message);

  const yaml::Node& root_;
  const Schema& defaults_from_;
  RunFacts facts_;
  mutable std::vector<std::unique_ptr<yaml::Node>> defaults_;
  std::vector<Problem> problems_;
};

void check_loss_rules(RuleContext& context);             // the KL of GRPO
void check_output_rules(RuleContext& context);           // what the loss differentiates
void check_batch_rules(RuleContext& context);            // divisibility, packing, padding
void check_grpo_rules(RuleContext& context);             // rewards, advantages, validation
void check_eval_rules(RuleContext& context);             // eval
void check_supervised_rules(RuleContext& context);       // sft, dpo, rm
void check_data_rules(RuleContext& context);             // datasets, and the keys that they read
void check_batch_invariant_rules(RuleContext& context);  // policy.batch_invariant
void check_generation_rules(RuleContext& context);       // sampling
void check_placement_rules(RuleContext& context);        // generation on ranks of its own, asynchronous GRPO
void check_run_rules(RuleContext& context);              // model, backend, checkpoints, cluster, plugins
void check_schedule_rules(RuleContext& context);         // optimizer and policy.scheduler

}  // namespace hexad::config
