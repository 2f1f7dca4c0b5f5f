#include "plugins/dtensor/settings.hpp"

namespace hexad::dtensor {
namespace {

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

}  // namespace

Settings read_settings(const sdk::Config& config) {
  refuse_parallel_sizes(config);
  Settings settings;
  static_cast<modeling::ModelSettings&>(settings) = modeling::read_model_settings(config);
  settings.optimizer = modeling::parse_optimizer(config.get("optimizer.name", "torch.optim.AdamW"),
                                                 modeling::json_at(config, "optimizer.kwargs"));
  settings.cpu_offload = config.get("dtensor_cfg.cpu_offload", false);
  settings.activation_checkpointing = config.get("dtensor_cfg.activation_checkpointing", false);
  settings.reshard_after_forward = config.get("dtensor_cfg.reshard_after_forward", true);
  return settings;
}

}  // namespace hexad::dtensor
