#include "core/config/rules/rules.hpp"

namespace hexad::config {

void check_loss_rules(RuleContext& c) {
  if (c.flag("loss_fn.use_kl_in_reward") && c.text("grpo.adv_estimator.name") != "reinforce_plus_plus") {
    c.notice("loss_fn.use_kl_in_reward",
             "only grpo.adv_estimator.name: reinforce_plus_plus puts the KL into rewards; here it is left out of both");
  }
}

}  // namespace hexad::config
