// Context parallelism, and the lengths that it and sequence parallelism need.
#include "core/base/joined.hpp"
#include "core/config/rules_context.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kCp = "context_parallel_size";

void check_packing(const MegatronRules& r) {
  if (r.cp > 1 && !r.packing()) {
    r.error(kCp, fmt::format("{} needs policy.sequence_packing.enabled: true; nearest: 1 without packing", r.cp));
  }
}

// Rule 21: each sequence is cut into 2 x CP pieces, and under sequence parallelism each piece into TP.
void check_lengths(const MegatronRules& r) {
  const bool sequence_parallel = r.tp > 1 && r.flag("sequence_parallel");
  const int64_t needed = (r.cp > 1 ? 2 * r.cp : 1) * (sequence_parallel ? r.tp : 1);
  std::vector<std::string> factors;
  if (r.cp > 1) factors.push_back(fmt::format("2 x {} {}", kCp, r.cp));
  if (sequence_parallel) factors.push_back(fmt::format("tensor_model_parallel_size {} with sequence_parallel", r.tp));
  const std::string key = "policy.make_sequence_length_divisible_by";
  const std::optional<int64_t> multiple = r.c.integer(key);
  if (r.packing() && multiple && *multiple > 0 && *multiple % needed != 0) {
    r.c.error(key,
              fmt::format("got {}, wanted a multiple of {} ({}){}", *multiple, needed, joined(factors, " x "),
                          nearest_valid(*multiple, *multiple + needed, [&](int64_t v) { return v % needed == 0; })));
  }
  const std::string longest_key = "policy.max_total_sequence_length";
  const std::optional<int64_t> longest = r.c.integer(longest_key);
  if (r.cp > 1 && longest && *longest > 0 && *longest % (2 * r.cp) != 0) {
    r.c.error(
        longest_key,
        fmt::format("got {}, wanted a multiple of {} (2 x context_parallel_size {}){}", *longest, 2 * r.cp, r.cp,
                    nearest_valid(*longest, *longest + 2 * r.cp, [&](int64_t v) { return v % (2 * r.cp) == 0; })));
  }
}

}  // namespace

void check_megatron_context(const MegatronRules& r) {
  check_packing(r);
  check_lengths(r);
  ContextExchangeRules{r.c, "policy.megatron_cfg", r.model, r.cp, r.tp}.check();
}

// What NeMo-RL asks of its two ways to compute log-probs.
void check_megatron_logprobs(const MegatronRules& r) {
  if (r.c.integer("policy.logprob_chunk_size") && !r.flag("defer_fp32_logits")) {
    r.c.error("policy.logprob_chunk_size", "needs policy.megatron_cfg.defer_fp32_logits: true");
  }
  if (!r.flag("use_fused_linear_logprobs")) return;
  const bool filters =
      r.c.number("policy.generation.top_p").value_or(1) < 1 || r.c.integer("policy.generation.top_k").value_or(-1) > 0;
  if (r.packing() || filters || r.cp > 1 || r.flag("distributed_data_parallel_config.overlap_param_gather")) {
    r.error("use_fused_linear_logprobs",
            "does not go with sequence_packing, top_p, top_k, context parallelism or overlap_param_gather");
  }
}

}  // namespace hexad::config
