// The whole model as sharded units, in forward order, with the copies of weights that are kept beside the current ones.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "modeling/family/weight_table.hpp"
#include "plugins/dtensor/groups.hpp"
#include "plugins/dtensor/sharded_unit.hpp"

namespace hexad::dtensor {

// Where a weight that gradients move lies: on every rank, but for experts that are shared out.
struct WeightPlace {
  const modeling::WeightInfo* info;
  std::optional<int64_t> owner;  // of an expert that is shared out: the rank of groups().ep that holds it
  size_t unit = 0, param = 0;    // where it is held
};

class ShardedModel {
 public:
  ShardedModel(const modeling::ModelConfig& config, const Groups& groups, const UnitOptions& options);
  ShardedModel(const ShardedModel&) = delete;

  const modeling::ModelConfig& config() const { return config_; }
  const Groups& groups() const { return groups_; }
  const UnitOptions& options() const { return options_; }
  const std::vector<modeling::WeightInfo>& table() const { return table_; }
  int64_t num_parameters() const;

  std::vector<ShardedUnit>& units() { return units_; }
  ShardedUnit& embedding() { return units_.front(); }
  // One unit, or two where the experts are shared out: these have their own.
  std::span<ShardedUnit> block(int64_t layer);
  // Of a block whose units are unsharded.
  const at::Tensor& block_weight(int64_t layer, const std::string& name);
  ShardedUnit& head() { return units_.back(); }
  // The unit that holds the weight of the logits: the embedding's when tied.
  ShardedUnit& logits_unit() { return config_.tie_word_embeddings ? units_.front() : units_.back(); }

  // Flat shards of a unit under HEXAD_WEIGHTS_CURRENT, _REFERENCE, _SNAPSHOT or _GRADIENTS (zeros before the first
  // micro-batch). Throws sdk::Error when such weights were never kept.
  at::Tensor shards(size_t unit, int32_t which);
  // Keeps a copy in the compute dtype on the host: what the full weights are made of does not change by it.
  void keep(int32_t which);
  // Those of table() that gradients move, in its order.
  const std::vector<WeightPlace>& places() const { return places_; }
  bool holds(const WeightPlace& place) const { return !place.owner || *place.owner == groups_.ep.rank(); }
  // This rank's rows of a weight that it holds.
  using RowsOf = std::function<at::Tensor(size_t unit, size_t param)>;
  // The whole weight on every rank, on the compute device in `dtype`. Collective over the world.
  at::Tensor whole(const WeightPlace& place, at::ScalarType dtype, const RowsOf& rows) const;
  // The same in the compute dtype, of a unit that is unsharded on every rank: a view of it, unless ranks have parts.
  at::Tensor whole(const WeightPlace& place) const;
  // Replaces the slices of this rank: fill(param) returns param.slice() of the weight, in any dtype.
  using RowSource = std::function<at::Tensor(const ShardedParam& param)>;
  void set_weights(int32_t which, const RowSource& fill);

  // Weights that no gradient moves (a router's expert bias): whole on every rank, in fp32, in no unit.
  const std::vector<ShardedParam>& frozen_params() const { return frozen_params_; }
  // Undefined when `name` is not one of them; otherwise under HEXAD_WEIGHTS_CURRENT, _REFERENCE or _SNAPSHOT.
  at::Tensor frozen(const std::string& name, int32_t which) const;

  int64_t kept_bytes() const;

 private:
  // Kept weights lie where the masters do: a pass under them gathers without the host.
  at::TensorOptions kept_options() const;
  void add_units(const std::string& name);
  modeling::TensorPart part_of(const modeling::WeightInfo& info) const;
  // The whole weight on every rank, of tensor-parallel parts, or of an expert that its owner alone has.
  at::Tensor spread(const WeightPlace& place, const at::Tensor& part, const at::TensorOptions& options) const;

  modeling::ModelConfig config_;
  Groups groups_;
  UnitOptions options_;
  std::vector<modeling::WeightInfo> table_;
  std::vector<ShardedUnit> units_;
  std::vector<size_t> first_units_;  // of each name of weight_units(), in units_; and the end
  std::vector<WeightPlace> places_;
  std::map<int32_t, std::vector<at::Tensor>> kept_;  // by which, flat shards a unit
  std::vector<ShardedParam> frozen_params_;
  std::map<int32_t, std::map<std::string, at::Tensor>> frozen_;  // by which and name
};

}  // namespace hexad::dtensor
