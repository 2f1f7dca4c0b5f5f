#include <algorithm>

#include "core/config/rules/rules.hpp"
#include "lib/base/text.hpp"

namespace hexad::config {

void check_loss_rules(RuleContext& c) {
  if (!c.flag("loss_fn.use_kl_in_reward")) return;
  if (c.text("grpo.adv_estimator.name") != "reinforce_plus_plus")
    c.notice("loss_fn.use_kl_in_reward",
             "only grpo.adv_estimator.name: reinforce_plus_plus puts the KL into rewards; here it is left out of both");
  else if (c.number("policy.generation.top_p").value_or(1) < 1 || c.integer("policy.generation.top_k").value_or(0) > 0)
    c.notice("loss_fn.use_kl_in_reward",
             "takes the policy's log-probs under top_p and top_k, and the reference's without; the loss's KL does not");
}

// What the loss differentiates is among what the backend makes.
void check_output_rules(RuleContext& c) {
  const RunFacts& facts = c.facts();
  if (!facts.outputs) return;
  for (const std::string& name : facts.differentiates) {
    if (std::ranges::find(*facts.outputs, name) != facts.outputs->end()) continue;
    c.error("loss_fn.plugin",
            fmt::format("the loss '{}' differentiates {}, which the backend '{}' does not make (it makes {}): choose "
                        "another loss_fn.plugin or policy.backend",
                        facts.loss, name, facts.backend, joined(*facts.outputs)));
  }
}

}  // namespace hexad::config
