#include "plugins/dtensor/settings.hpp"

#include <fstream>

#include "modeling/error.hpp"

namespace hexad::dtensor {
namespace {

using nlohmann::json;

void refuse_parallel_sizes(const sdk::Config& config) {
  for (const char* key : {"dtensor_cfg.tensor_parallel_size", "dtensor_cfg.context_parallel_size",
                          "dtensor_cfg.expert_parallel_size", "dtensor_cfg.dp_replicate_size"}) {
    const int64_t size = config.get<int64_t>(key, 1);
    if (size != 1)
      sdk::fail(HEXAD_UNIMPLEMENTED, "policy.%s is %lld: not available in the dtensor backend yet, wanted 1", key,
                static_cast<long long>(size));
  }
  for (const char* key : {"dtensor_cfg.sequence_parallel", "dtensor_cfg.lora_cfg.enabled"})
    if (config.get<bool>(key, false))
      sdk::fail(HEXAD_UNIMPLEMENTED, "policy.%s is true: not available in the dtensor backend yet, wanted false", key);
}

at::ScalarType parse_precision(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.precision is '%s', wanted float32, bfloat16 or float16", name.c_str());
}

json parse_json(const sdk::Config& config, const char* path) {
  const std::optional<std::string> text = config.json(path);
  return text ? json::parse(*text) : json();
}

modeling::ModelConfig read_model(const std::filesystem::path& dir, const json& overrides) {
  const std::filesystem::path file = dir / "config.json";
  std::ifstream in(file);
  if (!in)
    modeling::fail("policy.model_name '{}': {} cannot be read; wanted a local Hugging Face directory", dir.string(),
                   file.string());
  json document = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) modeling::fail("{} is not a JSON object", file.string());
  if (!overrides.is_null()) {
    if (!overrides.is_object())
      modeling::fail("policy.hf_config_overrides must be a mapping, got {}", overrides.dump());
    document.merge_patch(overrides);
  }
  return modeling::parse_model_config(document, file.string());
}

}  // namespace

Settings read_settings(const sdk::Config& config) {
  refuse_parallel_sizes(config);
  Settings settings;
  settings.model_dir = config.get("model_name", "");
  if (settings.model_dir.empty()) sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.model_name is missing");
  settings.model = read_model(settings.model_dir, parse_json(config, "hf_config_overrides"));
  settings.compute_dtype = parse_precision(config.get("precision", "bfloat16"));
  settings.optimizer = modeling::parse_optimizer(config.get("optimizer.name", "torch.optim.AdamW"),
                                                 parse_json(config, "optimizer.kwargs"));
  settings.cpu_offload = config.get("dtensor_cfg.cpu_offload", false);
  settings.activation_checkpointing = config.get("dtensor_cfg.activation_checkpointing", false);
  settings.reshard_after_forward = config.get("dtensor_cfg.reshard_after_forward", true);
  settings.random_init_seed = config.find<int64_t>("random_init_seed");
  settings.logprob_chunk_tokens = config.get<int64_t>("logprob_chunk_size", 0);
  return settings;
}

}  // namespace hexad::dtensor
