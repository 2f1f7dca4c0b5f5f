// Does a checkpoint hold the weights that a model needs?
#pragma once
#include <string>
#include <vector>

#include "modeling/family/weight_table.hpp"
#include "modeling/weight/safetensors_reader.hpp"

namespace hexad::modeling {

// Throws Error listing the missing weights (at most ten), or the first wrong shape, with file, got and wanted. Returns
// a warning line for each stored tensor that the model does not use (a stored lm_head.weight of a tied model and rotary
// inv_freq buffers are passed over in silence; layers beyond the model's, multi-token prediction, share one line).
std::vector<std::string> validate_weights(const SafetensorsReader& reader, const std::vector<WeightInfo>& table);

// Throws Error naming the weight, its file and the first element that is nan or infinite.
void require_finite(const at::Tensor& tensor, const std::string& name, const std::string& file);

}  // namespace hexad::modeling
