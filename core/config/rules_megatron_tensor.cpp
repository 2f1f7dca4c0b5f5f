// Tensor and sequence parallelism.
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kTp = "tensor_model_parallel_size";

// Rule 4.
void check_sequence_parallel(const MegatronRules& r) {
  if (r.flag("sequence_parallel") && r.tp == 1) {
    r.error("sequence_parallel", "true needs tensor_model_parallel_size above 1, got 1; nearest: false, or 2 ranks");
  }
  if (r.flag("tp_comm_overlap") && !r.flag("sequence_parallel")) {
    r.error("tp_comm_overlap", "needs sequence_parallel: true; nearest: false");
  }
}

// Rule 5, and the same of the feed-forward part, whose columns are shared likewise.
void check_divides(const MegatronRules& r, const char* key, int64_t ranks, const char* what,
                   std::optional<int64_t> size) {
  if (!size || *size < 1 || *size % ranks == 0) return;
  r.error(key, fmt::format("{} {} does not divide {} {}{}", key, ranks, what, *size,
                           nearest_valid(ranks, *size, [&](int64_t v) { return *size % v == 0; })));
}

// Rule 6: ranks share the key-value heads, or each is held by several ranks.
void check_key_value_heads(const MegatronRules& r) {
  if (!r.model.num_key_value_heads || *r.model.num_key_value_heads < 1) return;
  const int64_t groups = *r.model.num_key_value_heads, heads = r.model.num_attention_heads.value_or(groups);
  const auto fits = [&](int64_t tp) { return groups % tp == 0 || tp % groups == 0; };
  if (fits(r.tp)) return;
  r.error(kTp, fmt::format("num_key_value_heads {} is neither a multiple nor a divisor of {} {}{}", groups, kTp, r.tp,
                           nearest_valid(r.tp, heads, [&](int64_t v) { return fits(v) && heads % v == 0; })));
}

}  // namespace

void check_megatron_tensor(const MegatronRules& r) {
  check_sequence_parallel(r);
  check_divides(r, kTp, r.tp, "num_attention_heads", r.model.num_attention_heads);
  check_key_value_heads(r);
  check_divides(r, kTp, r.tp, "intermediate_size", r.model.intermediate_size);
  check_divides(r, "expert_tensor_parallel_size", r.etp, "moe_intermediate_size", r.model.moe_intermediate_size);
}

}  // namespace hexad::config
