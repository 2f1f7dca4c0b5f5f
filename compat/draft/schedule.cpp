#include "compat/draft/schedule.hpp"

#include <algorithm>

namespace hexad::compat {
namespace {

using yaml::Node;

// A factor that PyTorch's LinearLR takes (it refuses 0) for the first step of a rise that begins at 0.
constexpr double kNearlyZero = 1e-8;

Node stage(const std::string& name, Node::Map kwargs) {
  return Node(Node::Map{{"name", Node("torch.optim.lr_scheduler." + name)}, {"kwargs", Node(std::move(kwargs))}});
}

Node linear(double from, double to, int64_t steps) {
  return stage("LinearLR", {{"start_factor", Node(from)}, {"end_factor", Node(to)}, {"total_iters", Node(steps)}});
}

Node after_warmup(const Schedule& schedule) {
  const int64_t steps = schedule.total - schedule.warmup;
  const double floor = std::clamp(schedule.floor, 0.0, 1.0);
  switch (schedule.shape) {
    case Schedule::Shape::linear: return linear(1.0, floor, steps);
    case Schedule::Shape::cosine:
      return stage("CosineAnnealingLR", {{"T_max", Node(steps)}, {"eta_min", Node(floor * schedule.rate)}});
    case Schedule::Shape::constant: break;
  }
  return stage("ConstantLR", {{"factor", Node(1.0)}, {"total_iters", Node(int64_t{1})}});
}

}  // namespace

Node scheduler_of(const Schedule& schedule) {
  if (schedule.warmup < 1) return schedule.shape == Schedule::Shape::constant ? Node() : after_warmup(schedule);
  return Node(Node::List{linear(kNearlyZero, 1.0, schedule.warmup), after_warmup(schedule),
                         Node(Node::Map{{"milestones", Node(Node::List{Node(schedule.warmup)})}})});
}

}  // namespace hexad::compat
