#include "plugins/vllm_bridge/fp8/recipe.hpp"

#include <fstream>
#include <map>

#include "plugins/server_bridge/arguments.hpp"
#include "plugins/server_bridge/settings.hpp"

namespace hexad::vllm::fp8 {
namespace {

using Json = nlohmann::ordered_json;

model::ModelConfig model_at(const std::string& dir) {
  std::ifstream file(dir + "/config.json");
  try {
    return model::parse_model_config(nlohmann::json::parse(file), dir + "/config.json");
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "vllm_cfg.precision: got fp8, and which weights of the model are to be quantised cannot be told: %s",
              error.what());
  }
}

LeftOut left_out_by(const sdk::Config& config) {
  LeftOut result{config.get<int64_t>("vllm_cfg.num_first_layers_in_bf16", 0),
                 config.get<int64_t>("vllm_cfg.num_last_layers_in_bf16", 0),
                 {}};
  const Json words = bridge::subtree(config, "vllm_cfg.quantization_ignored_layer_kws");
  for (const Json& word : words.is_array() ? words : Json::array()) result.keywords.push_back(bridge::word_of(word));
  return result;
}

// What NeMo-RL's users may ask for and no stock server does.
void refuse_impossible(const sdk::Config& config, const Recipe& recipe) {
  if (recipe.mx && config.find<bool>("vllm_cfg.pow2_weight_scaling_factors") == false)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "vllm_cfg.pow2_weight_scaling_factors: got false, and scales of MX (vllm_cfg.is_mx) are powers of two");
  if (recipe.mx || !recipe.activation_powers || (recipe.deep_gemm && recipe.powers)) return;
  sdk::fail(
      HEXAD_INVALID_ARGUMENT,
      "vllm_cfg.pow2_activation_scaling_factors: got true; only DeepGEMM rounds them, and weights with them: wanted "
      "vllm_cfg.use_deep_gemm and vllm_cfg.pow2_weight_scaling_factors true as well");
}

}  // namespace

std::optional<Recipe> read_recipe(const sdk::Config& config, const std::string& model_dir) {
  const bool fp8 = config.get("vllm_cfg.precision", config.get("precision", "auto")) == "fp8";
  const bool mx = config.get("vllm_cfg.is_mx", false);
  if (!fp8 && mx)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "vllm_cfg.is_mx: got true, which is a form of FP8; wanted vllm_cfg.precision: fp8");
  if (!fp8) return std::nullopt;
  if (config.get("vllm_cfg.kv_cache_dtype", "auto") == "fp8_e5m2")
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "vllm_cfg.kv_cache_dtype: got fp8_e5m2, which vLLM has not beside weights in FP8; wanted auto or fp8");
  Recipe recipe;
  recipe.mx = mx;
  recipe.powers = config.get("vllm_cfg.pow2_weight_scaling_factors", false);
  recipe.activation_powers = config.get("vllm_cfg.pow2_activation_scaling_factors", false);
  recipe.deep_gemm = config.get("vllm_cfg.use_deep_gemm", false);
  refuse_impossible(config, recipe);
  recipe.layers = quantised_layers(model_at(model_dir), left_out_by(config), mx);
  return recipe;
}

const char* quantization_of(const Recipe& recipe) { return recipe.mx ? "modelopt_mxfp8" : "fp8"; }

Json quantization_config(const Recipe& recipe) {
  Json config = recipe.mx ? Json{{"quant_method", "modelopt"}, {"quant_algo", "MXFP8"}}
                          : Json{{"activation_scheme", "dynamic"},
                                 {"fmt", "e4m3"},
                                 {"quant_method", "fp8"},
                                 {"weight_block_size", {128, 128}}};
  // Both names of one list: Fp8Config reads the first, ModelOpt's the second.
  if (!recipe.layers.ignored.empty()) config["ignored_layers"] = config["ignore"] = recipe.layers.ignored;
  return config;
}

std::map<std::string, std::string> environment(const Recipe& recipe) {
  if (recipe.mx) return {};
  // Set also where DeepGEMM is vLLM's choice: with vLLM's default it rounds the scales that it is sent to powers of
  // two, and the weights once more.
  std::map<std::string, std::string> variables = {{"VLLM_USE_DEEP_GEMM_E8M0", recipe.activation_powers ? "1" : "0"}};
  if (recipe.deep_gemm) variables["VLLM_USE_DEEP_GEMM"] = "1";
  return variables;
}

}  // namespace hexad::vllm::fp8
