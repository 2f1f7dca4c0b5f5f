#include "plugins/dtensor/settings.hpp"

#include "modeling/parallel/tensor_plan.hpp"

namespace hexad::dtensor {
namespace {

long long ll(int64_t value) { return static_cast<long long>(value); }

int64_t size_of(const sdk::Config& config, const char* key) {
  const int64_t size = config.get<int64_t>(key, 1);
  if (size < 1) sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.%s is %lld, wanted at least 1", key, ll(size));
  return size;
}

// "1, 2, 4": what divides `amount`.
std::string divisors(int64_t amount) {
  std::string text;
  for (int64_t size = 1; size <= amount; ++size)
    if (amount % size == 0) text += (size > 1 ? ", " : "") + std::to_string(size);
  return text;
}

void read_mesh(const sdk::Config& config, int64_t world, Settings& settings) {
  settings.tp = size_of(config, "dtensor_cfg.tensor_parallel_size");
  settings.cp = size_of(config, "dtensor_cfg.context_parallel_size");
  settings.dp_replicate = size_of(config, "dtensor_cfg.dp_replicate_size");
  const bool fits = settings.tp <= world && settings.cp <= world && world % (settings.tp * settings.cp) == 0;
  if (!fits)
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "policy.dtensor_cfg.tensor_parallel_size %lld x context_parallel_size %lld does not divide the %lld ranks; "
        "products that do: %s",
        ll(settings.tp), ll(settings.cp), ll(world), divisors(world).c_str());
  const int64_t dp = world / (settings.tp * settings.cp);
  if (dp % settings.dp_replicate != 0)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.dtensor_cfg.dp_replicate_size is %lld, which does not divide the %lld data-parallel ranks; sizes "
              "that do: %s",
              ll(settings.dp_replicate), ll(dp), divisors(dp).c_str());
  settings.dp_shard = dp / settings.dp_replicate;
  settings.sequence_parallel = settings.tp > 1 && config.get("dtensor_cfg.sequence_parallel", false);
}

void refuse_unavailable(const sdk::Config& config) {
  if (const int64_t size = size_of(config, "dtensor_cfg.expert_parallel_size"); size != 1)
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "policy.dtensor_cfg.expert_parallel_size is %lld: not available in the dtensor backend yet, wanted 1",
              ll(size));
  if (config.get("dtensor_cfg.lora_cfg.enabled", false))
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "policy.dtensor_cfg.lora_cfg.enabled is true: not available in the dtensor backend yet, wanted false");
}

void check_tensor_parallel(const Settings& settings) {
  if (settings.tp == 1) return;
  const char* const what = settings.model.moe ? "experts" : settings.model.mla ? "latent attention" : nullptr;
  if (what)
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "policy.dtensor_cfg.tensor_parallel_size is %lld, but tensor parallelism of %s is not available in the "
              "dtensor backend yet; set it to 1",
              ll(settings.tp), what);
  modeling::check_tensor_parallel(settings.model, settings.tp);
}

}  // namespace

Settings read_settings(const sdk::Config& config, int64_t world) {
  refuse_unavailable(config);
  Settings settings;
  static_cast<modeling::ModelSettings&>(settings) = modeling::read_model_settings(config);
  read_mesh(config, world, settings);
  check_tensor_parallel(settings);
  settings.optimizer = modeling::parse_optimizer(config.get("optimizer.name", "torch.optim.AdamW"),
                                                 modeling::json_at(config, "optimizer.kwargs"));
  settings.cpu_offload = config.get("dtensor_cfg.cpu_offload", false);
  settings.activation_checkpointing = config.get("dtensor_cfg.activation_checkpointing", false);
  settings.reshard_after_forward = config.get("dtensor_cfg.reshard_after_forward", true);
  return settings;
}

}  // namespace hexad::dtensor
