// The text or list that says what each pipeline stage holds (Megatron's pipeline_model_parallel_layout).
#pragma once
#include <string>
#include <vector>

#include "core/config/node.hpp"

namespace hexad::config {

// Stages in order of the pipeline; each is a string of E (embedding), t (decoder layer), m (multi-token prediction),
// L (loss).
struct PipelineLayout {
  std::vector<std::string> stages;
  std::string problem;  // what is wrong with the form; then `stages` is empty

  size_t count(char layer) const;
};

// Text or lists of names, as lib/model reads them (lib/model/layer_layout.hpp).
PipelineLayout pipeline_layout(const Node& value);

}  // namespace hexad::config
