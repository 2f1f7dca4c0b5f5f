// Gradient reduction, the distributed optimizer and its states.
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const std::string kDdp = "distributed_data_parallel_config.";
const std::string kOptimizer = "optimizer.";

// Rule 24. The default of overlap_param_gather follows the two that it needs.
void check_overlap(const MegatronRules& r, bool distributed) {
  const std::string gather = kDdp + "overlap_param_gather";
  if (!r.given(gather) || !r.flag(gather)) return;
  if (!distributed) {
    r.error(gather,
            "needs optimizer.use_distributed_optimizer: true, for without it nothing is gathered; nearest: false");
  }
  // Megatron's own arguments refuse it; NeMo-RL does not look, and its recipes have it.
  if (!r.flag(kDdp + "overlap_grad_reduce"))
    r.notice(gather,
             "has no effect without overlap_grad_reduce: true: parameters are gathered before the forward pass");
}

// Rule 25.
void check_average(const MegatronRules& r) {
  const std::string key = kDdp + "average_in_collective";
  if (r.flag(key) && r.given("calculate_per_token_loss") && r.flag("calculate_per_token_loss")) {
    return r.error(key, "does not go with calculate_per_token_loss: true, whose gradients are sums; nearest: false");
  }
  const char* const sums =
      "has no effect: a loss is divided by the counts of the whole global batch, and gradients are "
      "sums of it over micro-batches and ranks";
  if (r.flag(key)) r.notice(key, sums);
  if (r.given("calculate_per_token_loss") && !r.flag("calculate_per_token_loss")) {
    r.notice("calculate_per_token_loss", sums);
  }
}

void check_instances(const MegatronRules& r, bool distributed) {
  const std::string key = kDdp + "num_distributed_optimizer_instances";
  const int64_t instances = r.integer(key).value_or(1);
  if (instances <= 1) return;
  if (!distributed)
    return r.error(key, fmt::format("{} needs optimizer.use_distributed_optimizer: true; nearest: 1", instances));
  const int64_t dense = r.dp() * r.cp, experts = r.edp();
  const auto fits = [&](int64_t v) { return dense % v == 0 && (!r.model.num_experts || experts % v == 0); };
  if (dense == 0 || experts == 0 || fits(instances)) return;
  r.error(key,
          fmt::format("got {}, wanted a divisor of the {} ranks (data x context parallel) that share the optimizer{}{}",
                      instances, dense,
                      r.model.num_experts ? fmt::format(" and of the {} that share the experts'", experts) : "",
                      nearest_valid(instances, dense, fits)));
}

void check_states(const MegatronRules& r, bool distributed) {
  const bool aware = r.flag(kOptimizer + "use_precision_aware_optimizer");
  const bool asked = r.given(kOptimizer + "use_precision_aware_optimizer") && aware;
  bool narrow = false;
  for (const char* state : {"main_params_dtype", "main_grads_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"}) {
    const std::string type = r.text(kOptimizer + state).value_or("float32");
    if (type == "float32") continue;
    narrow = true;
    if (!aware) {
      r.error(kOptimizer + state,
              fmt::format("'{}' needs use_precision_aware_optimizer: true; nearest: float32", type));
    }
  }
  const bool adam = r.text(kOptimizer + "optimizer").value_or("adam") == "adam";
  if (!adam && (asked || narrow)) {
    r.error(kOptimizer + "use_precision_aware_optimizer", "goes with optimizer adam, got sgd; nearest: false");
  }
  if (narrow && aware && !distributed) {
    r.error(kOptimizer + "use_precision_aware_optimizer",
            "needs use_distributed_optimizer: true for states that are not float32; nearest: float32 states");
  }
}

void check_offload(const MegatronRules& r) {
  const std::string key = kOptimizer + "optimizer_cpu_offload";
  const bool offload = r.flag(key);
  const double fraction = r.c.number(r.path(kOptimizer + "optimizer_offload_fraction")).value_or(0);
  if (offload && !r.flag(kOptimizer + "use_precision_aware_optimizer")) {
    r.error(key, "needs use_precision_aware_optimizer: true; nearest: true for both");
  }
  if (offload && fraction == 0) r.notice(key, "moves nothing: optimizer_offload_fraction is 0; 1.0 moves all states");
  const std::string part = kOptimizer + "optimizer_offload_fraction";
  if (fraction > 0 && !offload) r.notice(part, "has no effect without optimizer_cpu_offload: true");
}

void check_sharding(const MegatronRules& r) {
  const std::string key = kDdp + "data_parallel_sharding_strategy";
  const bool fsdp = r.flag(kDdp + "use_megatron_fsdp") || r.flag(kDdp + "use_custom_fsdp");
  if (fsdp && r.text(key).value_or("optim_grads_params") != "no_shard" &&
      !r.flag(kOptimizer + "use_distributed_optimizer")) {
    r.error(key, fmt::format("'{}' shares the optimizer's state and needs optimizer.use_distributed_optimizer: true; "
                             "nearest: no_shard",
                             r.text(key).value_or("optim_grads_params")));
  }
  const std::string strategy = r.text(key).value_or("optim_grads_params");
  if (fsdp && strategy.starts_with("optim_grads") && r.c.root().has(r.path(kDdp + "bucket_size"))) {
    r.notice(kDdp + "bucket_size", fmt::format("has no effect with {}: a bucket is a layer", strategy));
  }
  if (!r.given(key) || fsdp) return;
  r.notice(key, fmt::format("has its effect with use_megatron_fsdp: true; without it, as in Megatron, "
                            "optimizer.use_distributed_optimizer says what is shared: {}",
                            r.flag(kOptimizer + "use_distributed_optimizer") ? "optim" : "no_shard"));
}

}  // namespace

void check_megatron_optimizer(const MegatronRules& r) {
  const bool distributed = r.flag(kOptimizer + "use_distributed_optimizer");
  check_overlap(r, distributed);
  check_average(r);
  check_instances(r, distributed);
  check_states(r, distributed);
  check_offload(r);
  check_sharding(r);
}

}  // namespace hexad::config
