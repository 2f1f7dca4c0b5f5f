// policy.batch_invariant: what it does not go with.
#include "core/config/algorithm.hpp"
#include "core/config/rules/rules.hpp"
#include "lib/base/text.hpp"

namespace hexad::config {
namespace {

constexpr const char* kBatchInvariant = "policy.batch_invariant";

void want_value(RuleContext& c, bool fits, const std::string& path, const std::string& got, const std::string& wanted) {
  if (!fits)
    c.error(path, fmt::format("got {}, wanted {} with {}: true; nearest: {}", got, wanted, kBatchInvariant, wanted));
}

// Both plugins have to have it; what of their own keys does not go with it their manifests say.
void check_plugins(RuleContext& c) {
  if (!c.facts().batch_invariant)
    c.error(kBatchInvariant, fmt::format("the backend '{}' does not have it, wanted policy.backend {}; nearest: false",
                                         c.facts().backend, joined(c.facts().batch_invariant_backends, " or ")));
  if (c.root().has("policy.generation"))
    want_value(c, c.facts().generator_batch_invariant, "policy.generation.backend",
               c.text("policy.generation.backend").value_or(kDefaultGenerator), kDefaultGenerator);
}

// The rollout's log-probs are those of the whole distribution, which filters by top_k and the like change.
void check_sampling(RuleContext& c) {
  const std::string section = "policy.generation.";
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
  if (device == "cpu") c.error(kBatchInvariant, "is for GPUs, and cluster.device is cpu; nearest: false");
  check_plugins(c);
  if (c.root().has("policy.generation")) check_sampling(c);
}

}  // namespace hexad::config
