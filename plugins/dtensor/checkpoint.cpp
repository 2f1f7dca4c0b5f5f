#include "plugins/dtensor/checkpoint.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include "modeling/backend/checkpoint_files.hpp"
#include "modeling/backend/weight_source.hpp"
#include "modeling/weight/validate.hpp"

namespace hexad::dtensor {
namespace {

using modeling::Placement;

at::Tensor gather(const ShardedModel& model, const ShardedUnit& unit, const at::Tensor& flat, size_t i) {
  return modeling::redistribute(unit.rows_of(flat, i), unit.params()[i].shape, Placement::shard(0),
                                Placement::replicate(), model.group());
}

}  // namespace

std::vector<std::string> load_weights(ShardedModel& model, const std::filesystem::path& dir, int32_t which) {
  const modeling::SafetensorsReader reader(dir);
  std::vector<std::string> warnings = modeling::validate_weights(reader, model.table());
  model.set_weights(which, [&](const ShardedParam& param) {
    const at::Tensor rows = reader.rows(param.name, param.rows.begin, param.rows.end);
    modeling::require_finite(rows, param.name, reader.entries().at(param.name).file);
    return rows;
  });
  return warnings;
}

void randomize_weights(ShardedModel& model, int64_t seed) {
  model.set_weights(HEXAD_WEIGHTS_CURRENT, [&](const ShardedParam& param) {
    return modeling::random_weight(model.config(), {param.name, param.shape, ""}, seed)
        .narrow(0, param.rows.begin, param.rows.size());
  });
}

void save_weights(ShardedModel& model, const std::filesystem::path& source_dir, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  modeling::CheckpointWriter writer(model.group(), dir, modeling::model_specs(model.table()));
  model.each_param([&](size_t u, size_t i) {
    ShardedUnit& unit = model.units()[u];
    writer.write(unit.params()[i].name, gather(model, unit, unit.master(), i));
  });
  for (const ShardedParam& param : model.frozen_params())
    writer.write(param.name, model.frozen(param.name, HEXAD_WEIGHTS_CURRENT).to(at::kCPU));
  writer.run([&] { modeling::write_model_configs(model.config(), source_dir, dir); });
  writer.finish();
}

void save_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  const std::vector<std::string> names = optimizer.state_names();
  modeling::CheckpointWriter writer(model.group(), dir, modeling::optimizer_specs(model.table(), names));
  writer.write(modeling::kOptimizerSteps, at::full({1}, optimizer.steps(), at::kLong));
  model.each_param([&](size_t u, size_t i) {
    ShardedUnit& unit = model.units()[u];
    for (const std::string& name : names)
      writer.write(modeling::optimizer_key(unit.params()[i].name, name),
                   gather(model, unit, optimizer.state(name, u, unit.master()), i));
  });
  writer.finish();
}

void load_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  const modeling::SafetensorsReader reader(dir);
  modeling::validate_optimizer_state(reader, model.table(), optimizer.state_names());
  model.each_param([&](size_t u, size_t i) {
    ShardedUnit& unit = model.units()[u];
    const ShardedParam& param = unit.params()[i];
    for (const std::string& name : optimizer.state_names()) {
      at::Tensor& flat = optimizer.state(name, u, unit.master());
      if (param.rows.size() > 0)
        unit.rows_of(flat, i).copy_(
            reader.rows(modeling::optimizer_key(param.name, name), param.rows.begin, param.rows.end));
    }
  });
  optimizer.set_steps(reader.tensor(modeling::kOptimizerSteps).item<int64_t>());
}

}  // namespace hexad::dtensor
