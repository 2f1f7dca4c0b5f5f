#include "plugins/dtensor/sharded_model.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/services.hpp>

#include "modeling/parallel/tensor/gather.hpp"

namespace hexad::dtensor {
namespace {

const char* name_of(int32_t which) {
  return which == HEXAD_WEIGHTS_REFERENCE ? "reference" : which == HEXAD_WEIGHTS_SNAPSHOT ? "snapshot" : "unknown";
}

void require_kept_kind(int32_t which) {
  if (which != HEXAD_WEIGHTS_REFERENCE && which != HEXAD_WEIGHTS_SNAPSHOT)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weights %d cannot be kept: wanted reference (1) or snapshot (2)", which);
}

}  // namespace

ShardedModel::ShardedModel(const modeling::ModelConfig& config, const Groups& groups, const UnitOptions& options)
    : config_(config), groups_(groups), options_(options), table_(modeling::weight_table(config)) {
  for (const std::string& name : modeling::weight_units(config)) add_units(name);
  first_units_.push_back(units_.size());
  for (const modeling::WeightInfo& info : table_) {
    if (info.trainable) continue;
    ShardedParam param;
    param.info = info, param.part = part_of(info), param.shape = info.shape, param.rows = {0, info.shape[0]};
    frozen_params_.push_back(std::move(param));
  }
}

modeling::TensorPart ShardedModel::part_of(const modeling::WeightInfo& info) const {
  return modeling::tensor_part(config_, info, groups_.tp.rank(), groups_.tp.size());
}

void ShardedModel::add_units(const std::string& name) {
  first_units_.push_back(units_.size());
  std::vector<WeightPart> everyones, experts;
  for (const modeling::WeightInfo& info : table_) {
    if (info.unit != name || !info.trainable) continue;
    const std::optional<int64_t> expert = modeling::expert_of(info);
    if (!expert || groups_.ep.size() == 1) {
      places_.push_back({&info, std::nullopt, units_.size(), everyones.size()});
      everyones.push_back({info, part_of(info)});
      continue;
    }
    const int64_t owner = *expert / (config_.moe->num_experts / groups_.ep.size());
    places_.push_back({&info, owner, units_.size() + 1, experts.size()});
    if (owner == groups_.ep.rank()) experts.push_back({info, modeling::tensor_part(config_, info, 0, 1)});
  }
  units_.emplace_back(everyones, groups_.shards, options_);
  if (!experts.empty()) units_.emplace_back(experts, groups_.expert_shards, options_);
}

std::span<ShardedUnit> ShardedModel::block(int64_t layer) {
  const size_t first = first_units_[static_cast<size_t>(layer) + 1], end = first_units_[static_cast<size_t>(layer) + 2];
  return {&units_[first], end - first};
}

const at::Tensor& ShardedModel::block_weight(int64_t layer, const std::string& name) {
  const std::span<ShardedUnit> units = block(layer);
  return units.back().has(name) ? units.back().weight(name) : units.front().weight(name);
}

at::Tensor ShardedModel::frozen(const std::string& name, int32_t which) const {
  if (frozen_params_.empty()) return {};
  const auto set = frozen_.find(which);
  if (set == frozen_.end()) return {};
  const auto found = set->second.find(name);
  return found == set->second.end() ? at::Tensor() : found->second;
}

int64_t ShardedModel::num_parameters() const {
  int64_t total = 0;
  for (const modeling::WeightInfo& info : table_) {
    int64_t elements = 1;
    for (int64_t size : info.shape) elements *= size;
    total += elements;
  }
  return total;
}

at::Tensor ShardedModel::shards(size_t unit, int32_t which) {
  if (which == HEXAD_WEIGHTS_CURRENT) return units_[unit].master();
  if (which == HEXAD_WEIGHTS_GRADIENTS)
    return units_[unit].grad().defined() ? units_[unit].grad() : at::zeros_like(units_[unit].master());
  require_kept_kind(which);
  const auto found = kept_.find(which);
  if (found == kept_.end())
    sdk::fail(HEXAD_FAILED_PRECONDITION, "no %s weights are kept: call keep or load first", name_of(which));
  return found->second[unit];
}

at::Tensor ShardedModel::whole(const WeightPlace& place, at::ScalarType dtype, const RowsOf& rows) const {
  using modeling::Placement;
  const at::TensorOptions options = at::TensorOptions(options_.compute_device).dtype(dtype);
  if (!holds(place)) return spread(place, {}, options);
  const ShardedUnit& unit = units_[place.unit];
  const at::Tensor part =
      modeling::redistribute(rows(place.unit, place.param).to(options), unit.params()[place.param].shape,
                             Placement::shard(0), Placement::replicate(), unit.group());
  return spread(place, part, options);
}

at::Tensor ShardedModel::whole(const WeightPlace& place) const {
  const at::TensorOptions options = at::TensorOptions(options_.compute_device).dtype(options_.compute_dtype);
  return spread(place, holds(place) ? units_[place.unit].weights()[place.param].detach() : at::Tensor(), options);
}

at::Tensor ShardedModel::spread(const WeightPlace& place, const at::Tensor& part,
                                const at::TensorOptions& options) const {
  if (!place.owner) return modeling::gather_parts(config_, *place.info, part, groups_.tp);
  const at::Tensor whole = part.defined() ? part : at::empty(place.info->shape, options);
  groups_.ep.broadcast(whole, *place.owner).wait();
  return whole;
}

at::TensorOptions ShardedModel::kept_options() const {
  return at::TensorOptions(options_.shard_device).dtype(options_.compute_dtype);
}

void ShardedModel::keep(int32_t which) {
  require_kept_kind(which);
  const at::NoGradGuard no_grad;
  frozen_[which] = frozen_[HEXAD_WEIGHTS_CURRENT];
  std::vector<at::Tensor>& copies = kept_[which];
  copies.clear();
  for (ShardedUnit& unit : units_)
    copies.push_back(unit.master().to(kept_options(), /*non_blocking=*/false, /*copy=*/true));
}

void ShardedModel::set_weights(int32_t which, const RowSource& fill) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> copies;
  for (ShardedUnit& unit : units_) {
    const bool current = which == HEXAD_WEIGHTS_CURRENT;
    const at::Tensor flat = current ? unit.master() : at::zeros({unit.shard_size()}, kept_options());
    for (size_t i = 0; i < unit.params().size(); ++i)
      if (unit.params()[i].rows.size() > 0) unit.rows_of(flat, i).copy_(fill(unit.params()[i]));
    if (current) unit.weights_changed();
    copies.push_back(flat);
  }
  const auto fp32 = at::TensorOptions(options_.compute_device).dtype(at::kFloat);
  for (const ShardedParam& param : frozen_params_)
    frozen_[which][param.name()] = fill(param).to(fp32, /*non_blocking=*/false, /*copy=*/true);
  if (which == HEXAD_WEIGHTS_CURRENT) return;
  require_kept_kind(which);
  kept_[which] = std::move(copies);
}

int64_t ShardedModel::kept_bytes() const {
  int64_t bytes = 0;
  for (const auto& [which, flats] : kept_)
    for (const at::Tensor& flat : flats) bytes += static_cast<int64_t>(flat.nbytes());
  return bytes;
}

}  // namespace hexad::dtensor
