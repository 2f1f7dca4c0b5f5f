// Reading parts of RunConfig from a resolved tree.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/typed/run_config.hpp"

namespace hexad::config {

// Reads the keys of one section by their full paths, so that errors name them. A field whose key is absent keeps its
// value; null empties an optional one and leaves any other.
class Reader {
 public:
  Reader(const yaml::Node& root, std::string section) : root_(root), section_(std::move(section)) {}

  void read(const std::string& key, bool& out) const;
  void read(const std::string& key, int64_t& out) const;
  void read(const std::string& key, double& out) const;
  void read(const std::string& key, std::string& out) const;
  void read(const std::string& key, std::vector<std::string>& out) const;
  void read(const std::string& key, std::vector<double>& out) const;
  // The value as JSON; null as null.
  void read(const std::string& key, nlohmann::ordered_json& out) const;
  template <typename T>
  void read(const std::string& key, std::optional<T>& out) const {
    if (!find_any(key)) return;
    out.reset();
    if (find(key)) read(key, out.emplace());
  }

  std::optional<std::string> optional_text(const std::string& key) const { return root_.optional_string(path(key)); }
  // The value, or null if it is absent or null.
  const yaml::Node* find(const std::string& key) const;

 private:
  std::string path(const std::string& key) const { return section_ + "." + key; }
  const yaml::Node* find_any(const std::string& key) const { return root_.find(path(key)); }

  const yaml::Node& root_;
  std::string section_;
};

GrpoConfig read_grpo(const yaml::Node& root);
RewardPenaltiesConfig read_penalties(const yaml::Node& root);
SupervisedConfig read_supervised(const yaml::Node& root);  // of the configuration's algorithm
LossConfig read_loss(const yaml::Node& root);
PolicyConfig read_policy(const yaml::Node& root, const RunFacts& facts);
DataConfig read_data(const yaml::Node& root);

// Seconds of "DD:HH:MM:SS", of which each part may be any number below 10^9; nothing for any other text.
std::optional<double> duration_seconds(const std::string& text);

// The metric that checkpoints are ranked by: val:<name> and train:<name> as they are; NeMo-RL 0.3's "val_reward" is
// val:accuracy, and its other names are validation metrics.
std::string ranked_metric(const std::string& name);

}  // namespace hexad::config
