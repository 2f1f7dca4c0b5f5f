// The files of a checkpoint, the same for every backend and layout: Hugging Face weights, and optimizer state as one
// whole tensor a weight and state.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "modeling/family/weight_table.hpp"
#include "modeling/parallel/group.hpp"
#include "modeling/weight/safetensors_reader.hpp"
#include "modeling/weight/safetensors_writer.hpp"

namespace hexad::modeling {

// A checkpoint folder that rank 0 writes while all ranks bring the tensors: its error is kept between collectives, so
// that no rank waits for ever, and ends the save on every rank.
class CheckpointWriter {
 public:
  CheckpointWriter(const Group& world, const std::filesystem::path& dir, const std::vector<TensorSpec>& specs);

  // On rank 0; does nothing elsewhere, and after an error.
  void write(const std::string& name, const at::Tensor& whole);
  void run(const std::function<void()>& body);
  // Waits for rank 0; throws everywhere what it met.
  void finish();

 private:
  Group world_;
  std::filesystem::path dir_;
  std::optional<SafetensorsWriter> file_;
  std::string error_;
};

// config.json with dtype float32 and without layers of multi-token prediction, which no checkpoint of ours has; and, if
// the source has one of its own (lib/base/file/own_file.hpp), generation_config.json.
void write_model_configs(const ModelConfig& config, const std::filesystem::path& source_dir,
                         const std::filesystem::path& dir);

// "<weight>.<state>" and "steps".
inline constexpr const char* kOptimizerSteps = "steps";
std::string optimizer_key(const std::string& weight, const std::string& state);
std::vector<TensorSpec> model_specs(const std::vector<WeightInfo>& table);
// Of the weights that an optimizer moves (WeightInfo::trainable).
std::vector<TensorSpec> optimizer_specs(const std::vector<WeightInfo>& table, const std::vector<std::string>& states);

// Throws Error unless the stored tensors are exactly those that an optimizer with `states` keeps for `table`.
void validate_optimizer_state(const SafetensorsReader& reader, const std::vector<WeightInfo>& table,
                              const std::vector<std::string>& states);

}  // namespace hexad::modeling
