// policy.megatron_cfg.distributed_data_parallel_config.
#include "modeling/error.hpp"
#include "plugins/megatron/settings/settings.hpp"

namespace hexad::megatron {
namespace {

const std::string kDdp = "megatron_cfg.distributed_data_parallel_config.";

Sharding sharding_of(const std::string& strategy) {
  if (strategy == "no_shard") return Sharding::no_shard;
  if (strategy == "optim") return Sharding::optim;
  if (strategy == "optim_grads") return Sharding::optim_grads;
  if (strategy == "optim_grads_params") return Sharding::optim_grads_params;
  sdk::fail(HEXAD_INVALID_ARGUMENT,
            "policy.%sdata_parallel_sharding_strategy is '%s', wanted no_shard, optim, optim_grads or "
            "optim_grads_params",
            kDdp.c_str(), strategy.c_str());
}

}  // namespace

void read_data_parallel(const sdk::Config& config, Settings& settings) {
  const auto flag = [&](const char* name, bool otherwise) { return config.get((kDdp + name).c_str(), otherwise); };
  settings.bucket_size = config.find<int64_t>((kDdp + "bucket_size").c_str());
  if (settings.bucket_size.value_or(1) < 1)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.megatron_cfg.distributed_data_parallel_config.bucket_size is %lld, wanted at least 1 element",
              static_cast<long long>(*settings.bucket_size));
  const std::string strategy = config.get((kDdp + "data_parallel_sharding_strategy").c_str(), "optim_grads_params");
  // NeMo-RL's files name a strategy everywhere; it is in force with Megatron's FSDP alone.
  const bool named = flag("use_megatron_fsdp", false), older = flag("use_custom_fsdp", false);
  const Sharding chosen = sharding_of(strategy);
  if (named || older) settings.sharding = chosen;
  settings.overlap_grad_reduce = flag("overlap_grad_reduce", true);
  settings.overlap_param_gather =
      flag("overlap_param_gather", true) && settings.overlap_grad_reduce && settings.sharding != Sharding::no_shard;
  settings.gradient_dtype = flag("grad_reduce_in_fp32", false) ? at::kFloat : settings.compute_dtype;
}

}  // namespace hexad::megatron
