#include "core/config/load/defaults.hpp"
#include "core/config/rules/rules.hpp"

#include <functional>
#include <limits>

#include <fmt/format.h>

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

// Responses end where the sequence does.
void tell_long_responses(RuleContext& c) {
  const std::string key = "policy.generation.max_new_tokens", whole = "policy.max_total_sequence_length";
  const std::optional<int64_t> most = c.integer(key), longest = c.integer(whole);
  if (most && longest && *most > *longest)
    c.notice(key, fmt::format("got {}: responses end before it, where prompt and response have {} ({}) tokens", *most,
                              whole, *longest));
}

// The first element of a list that is wrong, named by its place.
void check_elements(RuleContext& c, const char* name, const std::function<bool(const yaml::Node&)>& is_right,
                    const std::string& wanted) {
  const std::string key = std::string("policy.generation.") + name;
  const yaml::Node* list = c.value(key);
  if (!list || !list->is_list()) return;
  for (size_t i = 0; i < list->items().size(); ++i) {
    if (is_right(list->items()[i])) continue;
    return c.error(key, fmt::format("element {} is {}, wanted {}", i, list->items()[i].describe(), wanted));
  }
}

// What every generator refuses in a request.
void check_requests(RuleContext& c) {
  constexpr double kMostId = std::numeric_limits<int32_t>::max();
  const auto within = [](double least, double most) {
    return [=](const yaml::Node& item) {
      return !item.is_number() || (item.as_double() >= least && item.as_double() <= most);
    };
  };
  check_elements(
      c, "stop_strings", [](const yaml::Node& item) { return !item.is_string() || !item.as_string().empty(); },
      "a text: every response would end with its first token");
  check_elements(c, "stop_token_ids", within(0, kMostId), fmt::format("a token, 0 to {:.0f}", kMostId));
  check_elements(c, "imposed_lengths", within(1, std::numeric_limits<double>::infinity()), "tokens, at least 1");
}

// One length a response of a rollout.
void check_imposed_lengths(RuleContext& c) {
  const yaml::Node* lengths = c.value("policy.generation.imposed_lengths");
  const auto prompts = c.integer("grpo.num_prompts_per_step"), samples = c.integer("grpo.num_generations_per_prompt");
  if (!lengths || !lengths->is_list() || lengths->items().empty() || c.flag("grpo.use_dynamic_sampling")) return;
  if (!prompts || !samples || static_cast<double>(lengths->items().size()) == 1.0 * *prompts * *samples) return;
  c.error("policy.generation.imposed_lengths",
          fmt::format("has {} lengths, wanted {}: grpo.num_prompts_per_step {} x grpo.num_generations_per_prompt {}",
                      lengths->items().size(), *prompts * *samples, *prompts, *samples));
}

}  // namespace

void check_generation_rules(RuleContext& c) {
  tell_rollout_filters(c);
  tell_long_responses(c);
  check_requests(c);
  if (c.root().has("grpo")) check_imposed_lengths(c);
  check_validation_sampling(c, "temperature", 1);
  check_validation_sampling(c, "top_p", 1);
  check_validation_sampling(c, "top_k", -1);
}

}  // namespace hexad::config
