#include "core/config/load/defaults.hpp"
#include "core/config/rules/rules.hpp"

namespace hexad::config {
namespace {

// Only NeMo-Gym samples otherwise in validation than in training.
void check_validation_sampling(RuleContext& c, const std::string& name, double otherwise) {
  const std::string key = "policy.generation." + name, val_key = "policy.generation.val_" + name;
  if (!c.root().has(val_key)) return;
  const double train = c.number(key).value_or(otherwise);
  const double val = c.number(val_key).value_or(otherwise);
  if (train == val) return;
  c.error(val_key, fmt::format("got {}, wanted that of training, {} is {}; sampling of its own in validation needs "
                               "NeMo-Gym, which is not available in this version",
                               val, key, train));
}

// Filters that rollouts have and training's log-probs have not; temperature, top_p and top_k are on both sides.
void tell_rollout_filters(RuleContext& c) {
  const double min_p = c.number("policy.generation.min_p").value_or(0);
  if (min_p <= 0 || !trains(c.root())) return;
  c.notice(
      "policy.generation.min_p",
      fmt::format("got {}: rollouts are drawn with it, and training's log-probs are without it, unlike temperature, "
                  "top_p and top_k; train/token_mult_prob_error tells how far they are apart; null: off",
                  min_p));
}

}  // namespace

void check_generation_rules(RuleContext& c) {
  tell_rollout_filters(c);
  check_validation_sampling(c, "temperature", 1);
  check_validation_sampling(c, "top_p", 1);
  check_validation_sampling(c, "top_k", -1);
}

}  // namespace hexad::config
