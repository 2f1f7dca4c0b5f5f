// Packing and dynamic batching, and the lengths that a layout needs.
#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

const std::string kRole = "actor_train.";

int64_t setting(const Pass& p, const std::string& path, int64_t otherwise) {
  const yaml::Node* value = p.out.find(path);
  return value && value->is_int() ? value->as_int() : otherwise;
}

// A size of the layout; one out of range counts as 1, and is reported elsewhere.
int64_t ranks(const Pass& p, const std::string& path) {
  const int64_t size = setting(p, path, 1);
  return size >= 1 && size <= 1'000'000 ? size : 1;
}

void set_packing(Pass& p, bool asked) {
  const int64_t longest = setting(p, "policy.max_total_sequence_length", 1);
  p.set("policy.sequence_packing.enabled", true, kRole + "use_sequence_packing");
  const std::pair<const char*, const char*> lengths[] = {{"max_packed_sequence_length_train", "train_mb_tokens"},
                                                         {"max_packed_sequence_length_forward", "logprob_mb_tokens"}};
  for (const auto& [from, to] : lengths) {
    const std::string key = kRole + "sequence_packing_args." + from;
    const std::optional<int64_t> tokens = p.file.integer(key);
    const bool training = to == std::string("train_mb_tokens");
    const int64_t micro = setting(p, training ? "policy.train_micro_batch_size" : "policy.logprob_batch_size", 1);
    if (asked && !tokens) {
      p.file.error(key,
                   fmt::format("is missing: use_sequence_packing needs the tokens of a row; nearest: {}", longest));
    } else if (tokens && *tokens < longest) {
      p.file.error(key, fmt::format("got {}, wanted at least the longest sequence, {} tokens; nearest: {}", *tokens,
                                    longest, longest));
    }
    int64_t size = longest;
    if (!tokens && __builtin_mul_overflow(longest, micro, &size)) size = longest;
    p.set(std::string("policy.sequence_packing.") + to, tokens.value_or(size), key);
  }
  p.file.text(kRole + "sequence_packing_args.algorithm");
}

void set_dynamic(Pass& p) {
  const bool train = p.file.flag(kRole + "use_dynamic_batching_in_train");
  const bool infer = p.file.flag(kRole + "use_dynamic_batching_in_infer");
  if (!train && !infer) return;
  const char* const at = "policy.dynamic_batching.";
  p.set(std::string(at) + "enabled", true,
        kRole + (train ? "use_dynamic_batching_in_train" : "use_dynamic_batching_in_infer"));
  if (train != infer) {
    p.file.notice(kRole + (train ? "use_dynamic_batching_in_train" : "use_dynamic_batching_in_infer"),
                  "training and log-probs both form micro-batches by tokens");
  }
  for (const auto& [when, to] : {std::pair{"train", "train_mb_tokens"}, std::pair{"infer", "logprob_mb_tokens"}}) {
    const std::string key = fmt::format("{}max_tokens_per_microbatch_in_{}", kRole, when);
    const int64_t tokens = p.file.integer(key).value_or(0);
    if (tokens > 0) {
      p.set(std::string(at) + to, tokens, key);
    } else if (p.file.flag(fmt::format("{}use_dynamic_batching_in_{}", kRole, when))) {
      p.file.error(key, fmt::format("is missing: dynamic batching needs the tokens of a micro-batch; nearest: {}",
                                    2 * setting(p, "policy.max_total_sequence_length", 1)));
    }
  }
  const std::string round = kRole + "sequence_length_round_in_" + (train ? "train" : "infer");
  p.move(round, std::string(at) + "sequence_length_round");
  p.file.integer(kRole + "sequence_length_round_in_" + (train ? "infer" : "train"));
  const int64_t tp = ranks(p, "policy.megatron_cfg.tensor_model_parallel_size");
  const int64_t multiple = p.file.integer(round).value_or(4);
  if (multiple % tp != 0) {
    p.file.error(round, fmt::format("got {}, wanted a multiple of tensor_model_parallel_size {}; nearest: {}", multiple,
                                    tp, (multiple / tp + 1) * tp));
  }
}

}  // namespace

void translate_batching(Pass& p) {
  const bool asked = p.file.flag(kRole + "use_sequence_packing");
  const int64_t cp = ranks(p, "policy.megatron_cfg.context_parallel_size");
  const int64_t tp = ranks(p, "policy.megatron_cfg.tensor_model_parallel_size");
  const yaml::Node* shared = p.out.find("policy.megatron_cfg.sequence_parallel");
  if (asked || cp > 1) set_packing(p, asked);
  if (!asked && cp > 1) {
    p.file.notice(kRole + "use_sequence_packing", "true: context parallelism goes with packing");
  }
  const int64_t needed = (cp > 1 ? 2 * cp : 1) * (shared && shared->is_bool() && shared->as_bool() ? tp : 1);
  if (needed > 1) {
    p.set("policy.make_sequence_length_divisible_by", needed, kRole + "strategy_args.strategy_config");
  }
  set_dynamic(p);
}

}  // namespace hexad::config::roll
