#include "core/config/rules/rules.hpp"

namespace hexad::config {
namespace {

// A list holds schedules and one {milestones}, one milestone fewer than schedules.
void check_list(RuleContext& c, const yaml::Node& list) {
  size_t schedules = 0;
  std::optional<size_t> milestones;
  for (const yaml::Node& item : list.items()) {
    const yaml::Node* steps = item.find("milestones");
    if (!item.is_map() || (!steps && !item.has("name"))) {
      return c.error("policy.scheduler", "an element is neither {name, kwargs} nor {milestones}");
    }
    if (steps && milestones) return c.error("policy.scheduler", "there are two lists of milestones, wanted one");
    if (steps) {
      milestones = steps->is_list() ? steps->items().size() : 0;
    } else {
      ++schedules;
    }
  }
  const bool single = schedules == 1 && milestones.value_or(0) == 0;
  if (schedules == 0 || (!single && milestones.value_or(0) + 1 != schedules)) {
    c.error("policy.scheduler", fmt::format("{} schedules and {} milestones, wanted one milestone fewer than schedules",
                                            schedules, milestones.value_or(0)));
  }
}

}  // namespace

void check_schedule_rules(RuleContext& c) {
  const yaml::Node* scheduler = c.root().find("policy.scheduler");
  if (scheduler && scheduler->is_list()) check_list(c, *scheduler);
  if (scheduler && scheduler->is_map() && !scheduler->has("name")) {
    c.error("policy.scheduler", "has no name, e.g. torch.optim.lr_scheduler.LinearLR");
  }
  const yaml::Node* betas = c.root().find("policy.optimizer.kwargs.betas");
  if (betas && betas->is_list() && betas->items().size() != 2) {
    c.error("policy.optimizer.kwargs.betas", fmt::format("got {} numbers, wanted 2", betas->items().size()));
  }
}

}  // namespace hexad::config
