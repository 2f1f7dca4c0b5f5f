// The weights of a model's folder, as far as the headers of its files tell: are they those that config.json asks for?
// Whoever loads a model and whoever checks a start ask here, so that both say the same.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/model/family/model_config.hpp"
#include "lib/model/family/weight_table.hpp"
#include "lib/tensorfile/safetensors.hpp"

namespace hexad::weights {

// Does `folder` hold safetensors (model.safetensors or model.safetensors.index.json)?
bool are_in(const std::filesystem::path& folder);

// The sentence about a folder where are_in() is false: what it holds in their place, or how to start without any.
std::string absent(const std::filesystem::path& folder);

// False for what no model here is made of: unsigned integers of 16 bits and more, and eight-bit floats, which mean
// nothing without their scales.
bool is_of_models(tensorfile::DType type);

// Throws Error(data) for the first tensor of another type.
void require_types(const tensorfile::Safetensors& stored);

struct Weights {
  tensorfile::Safetensors stored;
  std::vector<std::string> notices;  // a line each
};

// Opens the weights of `folder`, and reads no data. Throws Error(data) with file, got and wanted: the format, a type,
// missing weights of `table` (at most ten are listed), the first of another shape; the error says so where config.json,
// or a file beside it, calls the weights quantised. score.weight may be missing: a reward head is made then.
// Notices: each stored tensor that `table` does not have (a stored lm_head.weight of a tied model and rotary inv_freq
// buffers are passed over in silence; layers beyond the model's, multi-token prediction, share one line).
Weights open(const std::filesystem::path& folder, const model::ModelConfig& config,
             std::vector<model::WeightInfo> table, tensorfile::Pages pages = tensorfile::Pages::read_only);

}  // namespace hexad::weights
