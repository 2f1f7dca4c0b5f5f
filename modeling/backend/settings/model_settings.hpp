// What every training backend reads of the `policy` section.
#pragma once
#include <ATen/core/Tensor.h>
#include <hexad/services.hpp>

#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "modeling/family/model_config.hpp"
#include "modeling/op/fp8/fp8.hpp"
#include "modeling/op/logprob_head.hpp"

namespace hexad::modeling {

struct ModelSettings {
  std::filesystem::path model_dir;  // model_name: a Hugging Face directory
  ModelConfig model;                // its config.json with hf_config_overrides merged in
  at::ScalarType compute_dtype = at::kBFloat16;
  Fp8 fp8 = Fp8::off;                       // of linears; read_fp8()
  bool batch_invariant = false;             // forward passes have the generator's bits; batch_invariant.hpp
  std::optional<int64_t> random_init_seed;  // makes the weights when model_dir has none
  int64_t logprob_chunk_tokens = 0;         // logprob_chunk_size; 0: the head's own choice
};

// Throws sdk::Error or modeling::Error: wrong values, an unreadable config.json.
ModelSettings read_model_settings(const sdk::Config& config);

// The subtree at `path`; null when absent.
nlohmann::json json_at(const sdk::Config& config, const char* path);

// config.json of model_name with hf_config_overrides merged in. Throws modeling::Error where there is none.
nlohmann::json model_document(const sdk::Config& config);

// `section`: "megatron_cfg"; `recipe`: what an absent fp8_recipe means. Throws sdk::Error: wrong values, recipes and
// parameters in FP8, which are not available.
Fp8 read_fp8(const sdk::Config& config, const std::string& section, const char* recipe);

// Temperature and filters of the host's call (hexad_train_args, hexad_forward_args).
template <typename Args>
LogprobOptions head_options(const Args& args, const ModelSettings& settings) {
  LogprobOptions options;
  options.temperature = args.temperature;
  options.top_k = args.top_k;
  options.top_p = args.top_p;
  options.batch_invariant = settings.batch_invariant;
  options.chunk_tokens = settings.logprob_chunk_tokens;
  return options;
}

}  // namespace hexad::modeling
