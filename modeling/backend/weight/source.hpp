// Where the first weights of a run come from: a checkpoint, or random numbers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <hexad/services.hpp>

#include "modeling/backend/settings/model_settings.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/parallel/tensor/plan.hpp"
#include "modeling/weight/safetensors_reader.hpp"

namespace hexad::modeling {

// The whole weight as transformers initialises it: norms 1, biases 0, matrices normal(0, initializer_range). Its values
// depend on `seed` and its name alone, so any layout makes the same model.
at::Tensor random_weight(const ModelConfig& config, const WeightInfo& info, int64_t seed);

// Reads a slice of a stored weight, and no other rows. Throws Error for elements that are not finite.
at::Tensor read_slice(const SafetensorsReader& reader, const std::string& name, const WeightSlice& slice);

// The weights of a directory. A reward head that it does not hold, as a language model's, is made from `seed`.
class StoredWeights {
 public:
  // Throws Error: missing, truncated, wrong shape.
  StoredWeights(const std::filesystem::path& dir, const ModelConfig& config, const std::vector<WeightInfo>& table,
                int64_t seed);
  // Stored tensors that the model does not use, a head that was made.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // As read_slice().
  at::Tensor read(const WeightInfo& info, const WeightSlice& slice) const;

 private:
  const ModelConfig& config_;
  std::vector<std::string> warnings_;
  SafetensorsReader reader_;
  int64_t seed_;
  bool makes_head_;
};

// Calls load(directory) if settings.model_dir has weights, else make(seed) with settings.random_init_seed; says in the
// log which. Throws Error when there is neither.
void load_or_make_weights(const sdk::Call& call, const ModelSettings& settings,
                          const std::function<void(const std::filesystem::path&)>& load,
                          const std::function<void(int64_t)>& make);

}  // namespace hexad::modeling
