// The text or list that says what each pipeline stage holds (Megatron's pipeline_model_parallel_layout).
#pragma once
#include <optional>
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

// "Et*3|(tt|)*29,m|L": `|` ends a stage, `x*n` and `(...)*n` repeat, `,` and blanks are left out. As a list: one list
// a stage, of embedding, decoder, mtp, loss.
PipelineLayout pipeline_layout(const Node& value);

}  // namespace hexad::config
