// Which weights of a model a vLLM server holds in FP8: those of its linears, less what keys leave out and less what is
// never quantised here (embeddings, heads, routers).
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/model/family/model_config.hpp"

namespace hexad::vllm::fp8 {

// What vllm_cfg leaves in bf16.
struct LeftOut {
  int64_t first_layers = 0, last_layers = 0;
  std::vector<std::string> keywords;  // parts of names of modules
};

struct Layers {
  std::set<std::string> weights;     // that are quantised, by their Hugging Face names
  std::vector<std::string> ignored;  // modules that are not, as vLLM's quantization_config lists them
};

// Throws sdk::Error where vLLM holds as one matrix what would be quantised in part, or has no block for its parts.
// `whole_head`: the server quantises heads unless they are ignored.
Layers quantised_layers(const model::ModelConfig& config, const LeftOut& left_out, bool whole_head);

}  // namespace hexad::vllm::fp8
