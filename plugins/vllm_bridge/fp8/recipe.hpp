// Weights in FP8 as vllm_cfg asks for them (precision: fp8): what a server is started with, and what it is sent, in
// the form of a checkpoint that was quantised: e4m3 with weight_scale_inv, fp32, a block of 128 x 128; or OCP MX with
// weight_scale, e8m0, 32 elements (is_mx). NeMo-RL has vLLM's loader quantise; a stock server is sent the result.
#pragma once
#include <hexad/services.hpp>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "plugins/server_bridge/refit/formed_bucket.hpp"
#include "plugins/vllm_bridge/fp8/layers.hpp"

namespace hexad::vllm::fp8 {

struct Recipe {
  bool mx = false;
  bool powers = false;             // scales of weights are powers of two
  bool activation_powers = false;  // and those of activations
  bool deep_gemm = false;
  Layers layers;
};

// Nothing where precision is another. `model_dir`: has the model's config.json. Throws sdk::Error that names the key.
std::optional<Recipe> read_recipe(const sdk::Config& config, const std::string& model_dir);

// vLLM's names for what the server says its quantization is.
const char* quantization_of(const Recipe& recipe);

// Of hf_overrides.
nlohmann::ordered_json quantization_config(const Recipe& recipe);
std::map<std::string, std::string> environment(const Recipe& recipe);

// A bucket of whole weights as the server takes them. Throws sdk::Error for a weight that has no such form.
std::unique_ptr<bridge::FormedBucket> formed(const sdk::Call& call, const Recipe& recipe,
                                             const hexad_weight_list& bucket);

}  // namespace hexad::vllm::fp8
