#include "plugins/dtensor/settings.hpp"

#include <numeric>

#include "modeling/parallel/tensor/plan.hpp"

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
  settings.sequence_parallel = config.get("dtensor_cfg.sequence_parallel", false) && settings.tp > 1;
  settings.ep = size_of(config, "dtensor_cfg.expert_parallel_size");
}

// NeMo Automodel's name of how tokens reach their experts: torch gathers them all, the others exchange them.
void read_dispatcher(const sdk::Config& config, Settings& settings) {
  const char* const key = "dtensor_cfg.automodel_kwargs.backend.dispatcher";
  const std::string name = config.get(key, "deepep");
  if (name != "torch" && name != "deepep" && name != "hybridep")
    sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.%s is '%s', wanted torch, deepep or hybridep", key, name.c_str());
  settings.gather_tokens = name == "torch";
}

void refuse_unavailable(const sdk::Config& config) {
  if (config.get("dtensor_cfg.lora_cfg.enabled", false))
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "policy.dtensor_cfg.lora_cfg.enabled is true: not available in the dtensor backend yet, wanted false");
}

void require_width(int64_t tp, const char* what, int64_t width) {
  if (width % tp != 0)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.dtensor_cfg.tensor_parallel_size is %lld, which does not divide %s = %lld; sizes that do: %s",
              ll(tp), what, ll(width), divisors(width).c_str());
}

// Shared out over ep ranks, experts stay whole; otherwise tensor-parallel ranks cut each of them.
void check_experts(const Settings& settings) {
  const int64_t ep = settings.ep, ranks = settings.dp_shard * settings.cp * settings.tp;
  if (!settings.model.moe) {
    if (ep > 1)
      sdk::fail(HEXAD_INVALID_ARGUMENT,
                "policy.dtensor_cfg.expert_parallel_size is %lld, but the model has no experts: set it to 1", ll(ep));
    return;
  }
  const modeling::MoeConfig& moe = *settings.model.moe;
  if (ranks % ep != 0 || moe.num_experts % ep != 0)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.dtensor_cfg.expert_parallel_size is %lld, wanted a divisor of the %lld ranks that share weights "
              "(dp_shard %lld x context_parallel_size %lld x tensor_parallel_size %lld) and of the %lld experts; sizes "
              "that are: %s",
              ll(ep), ll(ranks), ll(settings.dp_shard), ll(settings.cp), ll(settings.tp), ll(moe.num_experts),
              divisors(std::gcd(ranks, moe.num_experts)).c_str());
  if (ep > 1 && settings.tp > 1 && !settings.sequence_parallel)
    sdk::fail(
        HEXAD_INVALID_ARGUMENT,
        "policy.dtensor_cfg.expert_parallel_size %lld with tensor_parallel_size %lld wants sequence_parallel: set "
        "it to true, so that every rank sends tokens of its own to the experts",
        ll(ep), ll(settings.tp));
  if (ep == 1) require_width(settings.tp, "the width of an expert", moe.intermediate_size);
  require_width(settings.tp, "the width of the shared experts", moe.shared_intermediate_size);
}

}  // namespace

Settings read_settings(const sdk::Config& config, int64_t world) {
  refuse_unavailable(config);
  Settings settings;
  static_cast<modeling::ModelSettings&>(settings) = modeling::read_model_settings(config);
  settings.fp8 = modeling::read_fp8(config, "dtensor_cfg", "tensorwise");
  read_mesh(config, world, settings);
  read_dispatcher(config, settings);
  if (settings.tp > 1) modeling::check_tensor_parallel(settings.model, settings.tp);
  check_experts(settings);
  settings.context = modeling::read_context_settings(config, "dtensor_cfg", settings.model, settings.cp, settings.tp);
  settings.optimizer = modeling::parse_optimizer(config.get("optimizer.name", "torch.optim.AdamW"),
                                                 modeling::json_at(config, "optimizer.kwargs"));
  settings.cpu_offload = config.get("dtensor_cfg.cpu_offload", false);
  settings.activation_checkpointing = config.get("dtensor_cfg.activation_checkpointing", false);
  settings.router_replay = modeling::replay_source(config, settings.model);
  settings.reshard_after_forward = config.find<bool>("dtensor_cfg.reshard_after_forward");
  settings.defer_grad_sync = config.find<bool>("dtensor_cfg.defer_fsdp_grad_sync");
  return settings;
}

}  // namespace hexad::dtensor
