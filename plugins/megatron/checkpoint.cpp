#include "plugins/megatron/checkpoint.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/abi.h>

#include "modeling/backend/weight/checkpoint_files.hpp"
#include "modeling/backend/weight/source.hpp"
#include "modeling/parallel/tensor/gather.hpp"

namespace hexad::megatron {

std::vector<std::string> load_weights(const Settings& settings, LocalWeights& weights, ShardedOptimizer& optimizer,
                                      const std::filesystem::path& dir, int32_t which) {
  const modeling::StoredWeights stored(dir, settings.model, weights.table(), settings.random_init_seed.value_or(0));
  const auto read = [&](const LocalWeight& weight) { return stored.read(weight.info, weight.part.slice); };
  weights.set(which, read);
  if (which != HEXAD_WEIGHTS_CURRENT) return stored.warnings();
  optimizer.parameters_changed();
  // A checkpoint in fp32 gives the masters the digits that the parameters in 16 bits do not have.
  for (const LocalWeight& weight : weights.weights()) optimizer.set("", weight, read(weight));
  weights.gather_owned();  // a master may have rounded its parameter otherwise
  return stored.warnings();
}

void randomize_weights(const Settings& settings, LocalWeights& weights, ShardedOptimizer& optimizer, int64_t seed) {
  const auto make = [&](const LocalWeight& weight) {
    return modeling::box_of(modeling::random_weight(settings.model, weight.info, seed), weight.part.slice);
  };
  weights.set(HEXAD_WEIGHTS_CURRENT, make);
  for (const LocalWeight& weight : weights.weights()) optimizer.set("", weight, make(weight));
  weights.gather_owned();
}

void save_weights(const Settings& settings, const Groups& groups, const LocalWeights& weights,
                  const WeightTransfer& transfer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  modeling::CheckpointWriter writer(groups.world, dir, modeling::model_specs(weights.table()));
  for (size_t i = 0; i < weights.table().size(); ++i) writer.write(weights.table()[i].hf_name, transfer.whole(i, ""));
  writer.run([&] { modeling::write_model_configs(settings.model, settings.model_dir, dir); });
  writer.finish();
}

void save_optimizer(const Groups& groups, const LocalWeights& weights, const ShardedOptimizer& optimizer,
                    const WeightTransfer& transfer, const std::filesystem::path& dir) {
  const at::NoGradGuard no_grad;
  const std::vector<std::string> names = optimizer.state_names();
  modeling::CheckpointWriter writer(groups.world, dir, modeling::optimizer_specs(weights.table(), names));
  writer.write(modeling::kOptimizerSteps, at::full({1}, optimizer.steps(), at::kLong));
  for (size_t i = 0; i < weights.table().size(); ++i)
    for (const std::string& name : weights.table()[i].trainable ? names : std::vector<std::string>())
      writer.write(modeling::optimizer_key(weights.table()[i].hf_name, name), transfer.whole(i, name));
  writer.finish();
}

void load_optimizer(const LocalWeights& weights, ShardedOptimizer& optimizer, const std::filesystem::path& dir) {
  const modeling::SafetensorsReader reader(dir);
  modeling::validate_optimizer_state(reader, weights.table(), optimizer.state_names());
  for (const LocalWeight& weight : weights.weights())
    for (const std::string& name : weight.trained() ? optimizer.state_names() : std::vector<std::string>())
      optimizer.set(
          name, weight,
          modeling::read_slice(reader, modeling::optimizer_key(weight.info.hf_name, name), weight.part.slice));
  optimizer.set_steps(reader.tensor(modeling::kOptimizerSteps).item<int64_t>());
}

}  // namespace hexad::megatron
