// What the loss differentiates is among what the backend makes.
#include <algorithm>

#include "lib/base/joined.hpp"
#include "core/config/rules/rules.hpp"

namespace hexad::config {

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
