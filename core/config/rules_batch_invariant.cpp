// policy.batch_invariant: what it does not go with.
#include "core/config/rules.hpp"

namespace hexad::config {
namespace {

constexpr const char* kBatchInvariant = "policy.batch_invariant";

void want_value(RuleContext& c, bool fits, const std::string& path, const std::string& got, const std::string& wanted) {
  if (!fits)
    c.error(path, fmt::format("got {}, wanted {} with {}: true; nearest: {}", got, wanted, kBatchInvariant, wanted));
}

// A replica's ranks would add parts of sums in an order that the generator has not.
void check_replica(RuleContext& c) {
  const std::string backend = c.backend(), section = "policy." + backend + "_cfg.";
  std::vector<std::string> sizes = {"context_parallel_size"};
  if (backend == "dtensor") {
    sizes.push_back("tensor_parallel_size");
  } else if (backend == "megatron") {
    sizes.insert(sizes.end(), {"tensor_model_parallel_size", "pipeline_model_parallel_size"});
  } else {
    return c.error(kBatchInvariant,
                   fmt::format("the backend '{}' does not have it, wanted policy.backend dtensor or megatron; "
                               "nearest: false",
                               backend));
  }
  for (const std::string& size : sizes) {
    const int64_t ranks = c.integer(section + size).value_or(1);
    want_value(c, ranks == 1, section + size, std::to_string(ranks), "1");
  }
  want_value(c, !c.flag(section + "fp8_cfg.enabled"), section + "fp8_cfg.enabled", "true", "false");
}

// The rollout's log-probs are those of the whole distribution, which filters by top_k and the like change.
void check_sampling(RuleContext& c) {
  const std::string section = "policy.generation.";
  const std::string backend = c.text(section + "backend").value_or("native");
  const std::string native_precision = c.text(section + "native_cfg.precision").value_or("bfloat16");
  want_value(c, native_precision == "bfloat16", section + "native_cfg.precision", native_precision, "bfloat16");
  const std::string cache = c.text(section + "native_cfg.kv_cache_dtype").value_or("auto");
  want_value(c, cache == "auto", section + "native_cfg.kv_cache_dtype", cache, "auto");
  want_value(c, backend == "native", section + "backend", backend, "native");
  const double top_p = c.number(section + "top_p").value_or(1), min_p = c.number(section + "min_p").value_or(0);
  const int64_t top_k = c.integer(section + "top_k").value_or(-1);
  want_value(c, top_p == 1, section + "top_p", fmt::format("{}", top_p), "1.0");
  want_value(c, top_k <= 0, section + "top_k", std::to_string(top_k), "null");
  want_value(c, min_p == 0, section + "min_p", fmt::format("{}", min_p), "null");
}

}  // namespace

void check_batch_invariant_rules(RuleContext& c) {
  if (!c.flag(kBatchInvariant)) return;
  const std::string precision = c.text("policy.precision").value_or("bfloat16");
  want_value(c, precision == "bfloat16", "policy.precision", precision, "bfloat16");
  want_value(c, !c.flag("policy.deterministic"), "policy.deterministic", "true", "false");
  const std::string device = c.text("cluster.device").value_or("auto");
  if (device == "cpu")
    c.error(kBatchInvariant,
            "is for GPUs of compute capability 9 (H100, H200), and cluster.device is cpu; nearest: false");
  check_replica(c);
  if (c.root().has("policy.generation")) check_sampling(c);
}

}  // namespace hexad::config
