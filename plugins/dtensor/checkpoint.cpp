#include "plugins/dtensor/checkpoint.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include "modeling/backend/weight/checkpoint_files.hpp"
#include "modeling/backend/weight/source.hpp"
#include "modeling/parallel/tensor/gather.hpp"

namespace hexad::dtensor {

std::vector<std::string> load_weights(ShardedModel& model, const std::filesystem::path& dir, int32_t which,
                                      int64_t seed) {
  const modeling::StoredWeights stored(dir, model.config(), model.table(), seed);
  model.set_weights(which, [&](const ShardedParam& param) { return stored.read(param.info, param.slice()); });
  return stored.warnings();
}

void randomize_weights(ShardedModel& model, int64_t seed) {
  model.set_weights(HEXAD_WEIGHTS_CURRENT, [&](const ShardedParam& param) {
    return modeling::box_of(modeling::random_weight(model.config(), param.info, seed), param.slice());
  });
}

void save_weights(ShardedModel& model, const std::filesystem::path& source_dir, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  modeling::CheckpointWriter writer(model.groups().world, dir, modeling::model_specs(model.table()));
  const auto rows = [&](size_t u, size_t i) { return model.units()[u].rows_of(model.units()[u].master(), i); };
  for (const WeightPlace& place : model.places())
    writer.write(place.info->hf_name, model.whole(place, at::kFloat, rows));
  for (const ShardedParam& param : model.frozen_params())
    writer.write(param.name(), model.frozen(param.name(), HEXAD_WEIGHTS_CURRENT).to(at::kCPU));
  writer.run([&] { modeling::write_model_configs(model.config(), source_dir, dir); });
  writer.finish();
}

void save_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  const std::vector<std::string> names = optimizer.state_names();
  modeling::CheckpointWriter writer(model.groups().world, dir, modeling::optimizer_specs(model.table(), names));
  writer.write(modeling::kOptimizerSteps, at::full({1}, optimizer.steps(), at::kLong));
  for (const WeightPlace& place : model.places()) {
    for (const std::string& name : names) {
      const auto rows = [&](size_t u, size_t i) {
        ShardedUnit& unit = model.units()[u];
        return unit.rows_of(optimizer.state(name, u, unit.master()), i);
      };
      writer.write(modeling::optimizer_key(place.info->hf_name, name), model.whole(place, at::kFloat, rows));
    }
  }
  writer.finish();
}

void load_optimizer(ShardedModel& model, modeling::Optimizer& optimizer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  const modeling::SafetensorsReader reader(dir);
  modeling::validate_optimizer_state(reader, model.table(), optimizer.state_names());
  for (size_t u = 0; u < model.units().size(); ++u) {
    ShardedUnit& unit = model.units()[u];
    for (const std::string& name : optimizer.state_names()) {
      const at::Tensor& flat = optimizer.state(name, u, unit.master());
      for (size_t i = 0; i < unit.params().size(); ++i) {
        const ShardedParam& param = unit.params()[i];
        if (param.rows.size() > 0)
          unit.rows_of(flat, i).copy_(
              modeling::read_slice(reader, modeling::optimizer_key(param.name(), name), param.slice()));
      }
    }
  }
  optimizer.set_steps(reader.tensor(modeling::kOptimizerSteps).item<int64_t>());
}

}  // namespace hexad::dtensor
