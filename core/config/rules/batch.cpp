#include <algorithm>
#include <numeric>

#include "core/config/rules/rules.hpp"

namespace hexad::config {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// A micro-batch size divides what one rank holds, unless micro-batches are formed by tokens.
void check_micro_batch(RuleContext& c, const std::string& key, int64_t samples, int64_t ranks, const std::string& of) {
  const std::optional<int64_t> size = c.integer(key);
  if (!size || *size < 1 || samples % ranks != 0 || (samples / ranks) % *size == 0) return;
  c.error(key, fmt::format("got {}, which does not divide the {} samples of a rank ({} {} over {} data-parallel ranks)",
                           *size, samples / ranks, of, samples, ranks));
}

void check_sizes(RuleContext& c) {
  const std::optional<int64_t> prompts = c.integer("grpo.num_prompts_per_step");
  const std::optional<int64_t> samples = c.integer("grpo.num_generations_per_prompt");
  const std::optional<int64_t> global = c.integer("policy.train_global_batch_size");
  if (!prompts || !samples || !global || *prompts < 1 || *samples < 1 || *global < 1) return;
  int64_t rollout = 0;
  if (__builtin_mul_overflow(*prompts, *samples, &rollout)) return;
  const std::string product =
      fmt::format("grpo.num_prompts_per_step x num_generations_per_prompt ({} x {} = {})", *prompts, *samples, rollout);
  if (rollout % *global != 0) {
    c.error("policy.train_global_batch_size", fmt::format("got {}, wanted a divisor of {}", *global, product));
  }
  if (c.flag("loss_fn.force_on_policy_ratio") && rollout != *global) {
    c.error("loss_fn.force_on_policy_ratio",
            fmt::format("needs one optimizer step a rollout: policy.train_global_batch_size is {}, wanted {}", *global,
                        product));
  }
  const std::optional<int64_t> ranks = c.data_parallel_size();
  if (!ranks) return;
  if (*global % *ranks != 0) {
    c.error("policy.train_global_batch_size",
            fmt::format("got {}, wanted a multiple of the {} data-parallel ranks", *global, *ranks));
  }
  if (c.flag("policy.sequence_packing.enabled") || c.flag("policy.dynamic_batching.enabled")) return;
  check_micro_batch(c, "policy.train_micro_batch_size", *global, *ranks, "policy.train_global_batch_size");
  check_micro_batch(c, "policy.logprob_batch_size", rollout, *ranks, "the rollout of");
}

// A row of packed sequences holds the longest sequence there can be, or the longest pair.
void check_capacity(RuleContext& c, const std::string& block, const std::string& name) {
  const std::string key = "policy." + block + "." + name;
  const std::optional<int64_t> tokens = c.integer(key);
  const std::optional<int64_t> longest = c.integer("policy.max_total_sequence_length");
  const std::optional<int64_t> multiple = c.integer("policy.make_sequence_length_divisible_by");
  if (!tokens || !longest || *longest < 1 || *longest > (1 << 30)) return;
  const bool pairs = has_pairs(c.algorithm());
  const int64_t unit = std::lcm(std::clamp<int64_t>(multiple.value_or(1), 1, 1 << 20),
                                std::clamp<int64_t>(c.facts().sequence_multiple.value_or(1), 1, 1 << 20));
  const int64_t padded = round_up(*longest, unit) * (pairs ? 2 : 1);
  if (*tokens >= padded) return;
  c.notice(key, fmt::format("got {}: {} of policy.max_total_sequence_length (padded, {} tokens) would not fit and end "
                            "the run",
                            *tokens, pairs ? "a pair of sequences" : "a sequence", padded));
}

}  // namespace

void check_batch_rules(RuleContext& c) {
  if (c.algorithm() == Algorithm::grpo) check_sizes(c);
  if (c.flag("policy.sequence_packing.enabled") && c.flag("policy.dynamic_batching.enabled")) {
    c.error("policy.dynamic_batching.enabled", "does not go with policy.sequence_packing.enabled: true");
  }
  for (const char* block : {"sequence_packing", "dynamic_batching"}) {
    if (!c.flag(std::string("policy.") + block + ".enabled")) continue;
    check_capacity(c, block, "train_mb_tokens");
    check_capacity(c, block, "logprob_mb_tokens");
  }
}

}  // namespace hexad::config
