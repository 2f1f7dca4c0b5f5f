#include "plugins/dtensor/sharded_model.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/services.hpp>

#include "modeling/parallel/tensor_gather.hpp"

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
  const auto part_of = [&](const modeling::WeightInfo& info) {
    return modeling::tensor_part(config, info, groups.tp.rank(), groups.tp.size());
  };
  for (const std::string& unit : modeling::weight_units(config)) {
    std::vector<WeightPart> members;
    for (const modeling::WeightInfo& info : table_)
      if (info.unit == unit && info.trainable) members.push_back({info, part_of(info)});
    units_.emplace_back(members, groups.shards, options);
  }
  for (const modeling::WeightInfo& info : table_) {
    if (info.trainable) continue;
    ShardedParam param;
    param.info = info, param.part = part_of(info), param.shape = info.shape, param.rows = {0, info.shape[0]};
    frozen_params_.push_back(std::move(param));
  }
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

at::Tensor ShardedModel::whole(const ShardedParam& param, const at::Tensor& rows) const {
  const at::Tensor part = modeling::redistribute(rows, param.shape, modeling::Placement::shard(0),
                                                 modeling::Placement::replicate(), groups_.shards);
  return modeling::gather_parts(config_, param.info, part, groups_.tp);
}

void ShardedModel::keep(int32_t which) {
  require_kept_kind(which);
  const at::NoGradGuard no_grad;
  frozen_[which] = frozen_[HEXAD_WEIGHTS_CURRENT];
  std::vector<at::Tensor>& copies = kept_[which];
  copies.clear();
  const auto host = at::TensorOptions(at::kCPU).dtype(options_.compute_dtype);
  for (ShardedUnit& unit : units_) copies.push_back(unit.master().to(host, /*non_blocking=*/false, /*copy=*/true));
}

void ShardedModel::set_weights(int32_t which, const RowSource& fill) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> copies;
  for (ShardedUnit& unit : units_) {
    const bool current = which == HEXAD_WEIGHTS_CURRENT;
    const at::Tensor flat =
        current ? unit.master()
                : at::zeros({unit.shard_size()}, at::TensorOptions(at::kCPU).dtype(options_.compute_dtype));
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

void ShardedModel::each_param(const std::function<void(size_t, size_t)>& visit) const {
  for (size_t unit = 0; unit < units_.size(); ++unit)
    for (size_t i = 0; i < units_[unit].params().size(); ++i) visit(unit, i);
}

int64_t ShardedModel::kept_bytes() const {
  int64_t bytes = 0;
  for (const auto& [which, flats] : kept_)
    for (const at::Tensor& flat : flats) bytes += static_cast<int64_t>(flat.nbytes());
  return bytes;
}

}  // namespace hexad::dtensor
