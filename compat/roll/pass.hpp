// One translation under way: the file, what came out so far, what is to be said.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compat/roll/missing.hpp"
#include "core/config/check.hpp"
#include "core/config/rules/rules.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config::roll {

// A part of the file with a schema of its own: all of it, or one strategy_config. Paths are relative to `prefix`.
class Part {
 public:
  Part(const yaml::Node& node, const Schema& schema, std::string prefix);

  // The value or its default, of the kind that the schema has checked; nothing where it is null, absent or wrong.
  const yaml::Node* value(const std::string& path);
  bool flag(const std::string& path);
  std::optional<int64_t> integer(const std::string& path);
  std::optional<double> number(const std::string& path);
  std::optional<std::string> text(const std::string& path);
  // The value that the file itself holds, null if there is none.
  const yaml::Node* given(const std::string& path);
  // The same of a section whose keys are asked for one by one.
  const yaml::Node* section(const std::string& path) const;
  yaml::Location location(const std::string& path) const;

  void error(const std::string& path, std::string message);
  void notice(const std::string& path, std::string message);
  // What the key asks for is not there; `advice` as in Missing.
  void missing(const std::string& path, std::string capability, std::string advice = "");

  // What the schema says about this part, what was said while it was translated, and a notice for each key that was
  // never asked for. Capabilities that are missing go to `missing`.
  std::vector<Problem> problems(std::vector<Missing>& missing);

 private:
  void add_unread(const yaml::Node& map, const std::string& path, std::vector<Problem>& out) const;
  bool was_read(const std::string& path) const;

  const yaml::Node& node_;
  const Schema& schema_;
  std::string prefix_;
  RuleContext context_;
  std::vector<Missing> missing_;
  std::set<std::string> read_;
};

struct Pass {
  Part& file;
  yaml::Node out;
  int64_t ranks = 1;          // of actor_train
  int64_t data_parallel = 1;  // of those, as many hold a copy of the model each

  // Puts a value at a path of NeMo-RL's, with the place of the key of `part` that it comes from.
  void set(const std::string& path, yaml::Node::Value value, const Part& part, const std::string& from) {
    out.set(path, yaml::Node(std::move(value), part.location(from)));
  }
  void set(const std::string& path, yaml::Node::Value value, const std::string& from) {
    set(path, std::move(value), file, from);
  }
  // The value of a key, if there is one.
  void move(const std::string& from, const std::string& path) { move(file, from, path); }
  void move(Part& part, const std::string& from, const std::string& path);
  // Only where the file holds the key.
  void move_given(Part& part, const std::string& from, const std::string& path);
};

// ROLL's device_mapping: the device ids of a list, or of Python text: `list(range(0,8))`, `[0, 1]`, and sums of those.
// Nothing if it is neither, names a device twice, or names more than a million.
std::optional<std::vector<int64_t>> device_mapping(const yaml::Node& value);

void translate_run(Pass& pass);        // steps, lengths, folders
void translate_devices(Pass& pass);    // cluster
void translate_algorithm(Pass& pass);  // grpo, loss_fn
void translate_places(Pass& pass);     // folders, checkpoints, model
void translate_training(Pass& pass);   // optimizer, batches
void translate_samples(Pass& pass);    // how the samples of a rollout are shared out
void translate_batching(Pass& pass);   // packing, dynamic batching
void translate_strategy(Pass& pass, Part& settings, const std::string& name);
void translate_megatron(Pass& pass, Part& settings);
void translate_generation(Pass& pass, const yaml::Node& settings, Part& known);
// Whether actor_infer's strategy is sglang. Of its strategy_config: `settings` all, `known` what ROLL or a key of ours
// names; the rest is flags of the server.
bool is_sglang(const yaml::Node& file);
yaml::Node known_settings(const yaml::Node& settings);
void translate_sglang(Pass& pass, const yaml::Node& settings, Part& known);
void translate_async(Pass& pass);  // behind translate_devices and translate_algorithm
void translate_data(Pass& pass);   // data
void translate_template(Pass& pass);
void translate_reference(Pass& pass);
void translate_preferences(Pass& pass);  // what the DPO pipeline has of its own

// Adds env; the environment that judges all samples, if there is one.
std::optional<std::string> translate_rewards(Pass& pass);

}  // namespace hexad::config::roll
