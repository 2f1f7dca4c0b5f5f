#include "modeling/backend/settings/model_settings.hpp"

#include "lib/base/file.hpp"
#include "modeling/error.hpp"
#include "modeling/weight/stored_dtype.hpp"

namespace hexad::modeling {
namespace {

using nlohmann::json;

at::ScalarType parse_precision(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.precision is '%s', wanted float32, bfloat16 or float16", name.c_str());
}

json read_document(const std::filesystem::path& dir, const json& overrides) {
  const std::filesystem::path file = dir / "config.json";
  if (!std::filesystem::exists(file))
    fail("policy.model_name '{}': {} cannot be read; wanted a local Hugging Face directory", dir.string(),
         file.string());
  json document =
      json::parse(with_tensorfile([&] { return hexad::read_file(file); }), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) fail("{} is not a JSON object", file.string());
  if (!overrides.is_null()) {
    if (!overrides.is_object()) fail("policy.hf_config_overrides must be a mapping, got {}", overrides.dump());
    document.merge_patch(overrides);
  }
  return document;
}

}  // namespace

json model_document(const sdk::Config& config) {
  return read_document(config.get("model_name", ""), json_at(config, "hf_config_overrides"));
}

json json_at(const sdk::Config& config, const char* path) {
  const std::optional<std::string> text = config.json(path);
  return text ? json::parse(*text) : json();
}

ModelSettings read_model_settings(const sdk::Config& config) {
  ModelSettings settings;
  settings.model_dir = config.get("model_name", "");
  if (settings.model_dir.empty()) sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.model_name is missing");
  settings.model = parse_model_config(model_document(config), (settings.model_dir / "config.json").string());
  if (config.get("reward_model_cfg.enabled", false)) {
    settings.model.reward_head = true;
    settings.model.tie_word_embeddings = false;
  }
  settings.compute_dtype = parse_precision(config.get("precision", "bfloat16"));
  settings.batch_invariant = config.get("batch_invariant", false);
  settings.random_init_seed = config.find<int64_t>("random_init_seed");
  settings.logprob_chunk_tokens = config.get<int64_t>("logprob_chunk_size", 0);
  return settings;
}

Fp8 read_fp8(const sdk::Config& config, const std::string& section, const char* recipe) {
  const std::string at = section + ".fp8_cfg.";
  if (!config.get((at + "enabled").c_str(), false)) return Fp8::off;
  const std::string format = config.get((at + "fp8").c_str(), "e4m3");
  if (format != "e4m3" && format != "hybrid")
    sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.%sfp8 is '%s', wanted e4m3 or hybrid", at.c_str(), format.c_str());
  const std::string scaling = config.get((at + "fp8_recipe").c_str(), recipe);
  if (scaling != "tensorwise" && scaling != "blockwise")
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "policy.%sfp8_recipe is '%s', which is not available: wanted tensorwise or blockwise", at.c_str(),
              scaling.c_str());
  if (config.get((at + "fp8_param").c_str(), false))
    sdk::fail(HEXAD_UNIMPLEMENTED, "policy.%sfp8_param is true: parameters in FP8 are not available, wanted false",
              at.c_str());
  if (scaling == "blockwise") return format == "hybrid" ? Fp8::blockwise_hybrid : Fp8::blockwise_e4m3;
  return format == "hybrid" ? Fp8::hybrid : Fp8::e4m3;
}

}  // namespace hexad::modeling
