// The whole model as sharded units, in forward order, with the copies of weights that are kept beside the current ones.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "modeling/family/weight_table.hpp"
#include "plugins/dtensor/groups.hpp"
#include "plugins/dtensor/sharded_unit.hpp"

namespace hexad::dtensor {

class ShardedModel {
 public:
  ShardedModel(const modeling::ModelConfig& config, const Groups& groups, const UnitOptions& options);

  const modeling::ModelConfig& config() const { return config_; }
  const Groups& groups() const { return groups_; }
  const UnitOptions& options() const { return options_; }
  const std::vector<modeling::WeightInfo>& table() const { return table_; }
  int64_t num_parameters() const;

  std::vector<ShardedUnit>& units() { return units_; }
  ShardedUnit& embedding() { return units_.front(); }
  ShardedUnit& block(int64_t layer) { return units_[static_cast<size_t>(layer) + 1]; }
  ShardedUnit& head() { return units_.back(); }
  // The unit that holds the weight of the logits: the embedding's when tied.
  ShardedUnit& logits_unit() { return config_.tie_word_embeddings ? units_.front() : units_.back(); }

  // Flat shards of a unit under HEXAD_WEIGHTS_CURRENT, _REFERENCE, _SNAPSHOT or _GRADIENTS (zeros before the first
  // micro-batch). Throws sdk::Error when such weights were never kept.
  at::Tensor shards(size_t unit, int32_t which);
  // Keeps a copy in the compute dtype on the host: what the full weights are made of does not change by it.
  void keep(int32_t which);
  // The whole weight on every rank, from this rank's rows of it in any dtype. Collective over the world.
  at::Tensor whole(const ShardedParam& param, const at::Tensor& rows) const;
  // Replaces the slices of this rank: fill(param) returns param.slice() of the weight, in any dtype.
  using RowSource = std::function<at::Tensor(const ShardedParam& param)>;
  void set_weights(int32_t which, const RowSource& fill);

  // Weights that no gradient moves (a router's expert bias): whole on every rank, in fp32, in no unit.
  const std::vector<ShardedParam>& frozen_params() const { return frozen_params_; }
  // Undefined when `name` is not one of them; otherwise under HEXAD_WEIGHTS_CURRENT, _REFERENCE or _SNAPSHOT.
  at::Tensor frozen(const std::string& name, int32_t which) const;

  // Calls visit(unit index, parameter index) in the order of table(), frozen weights left out.
  void each_param(const std::function<void(size_t unit, size_t param)>& visit) const;

  int64_t kept_bytes() const;

 private:
  modeling::ModelConfig config_;
  Groups groups_;
  UnitOptions options_;
  std::vector<modeling::WeightInfo> table_;
  std::vector<ShardedUnit> units_;
  std::map<int32_t, std::vector<at::Tensor>> kept_;  // by which, flat shards a unit
  std::vector<ShardedParam> frozen_params_;
  std::map<int32_t, std::map<std::string, at::Tensor>> frozen_;  // by which and name
};

}  // namespace hexad::dtensor
