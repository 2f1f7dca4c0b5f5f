#include "core/algorithm/grpo/replay_buffer.hpp"

#include <utility>

#include "lib/base/error.hpp"

namespace hexad::algorithm {

ReplayBuffer::ReplayBuffer(int64_t groups, int64_t max_age)
    : groups_(groups), max_age_(max_age), capacity_(groups * std::max<int64_t>(1, max_age) * 2) {}

int64_t ReplayBuffer::held(int64_t step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

void ReplayBuffer::add(Trajectories group) {
  const auto refuse = [&](const std::string& reason) {
    fail(ErrorKind::internal, "replay buffer: group {} of step {}, drawn from version {}: {}", group.place,
         group.target, group.version, reason);
  };
  if (full()) refuse(fmt::format("there are {} groups in it, as many as it holds", size_));
  if (group.target <= taken_) refuse(fmt::format("step {} has been trained", taken_));
  if (group.place < 0 || group.place >= groups_) refuse(fmt::format("a step has {} groups", groups_));
  const int64_t age = age_of(group);
  if (age < 0 || age > max_age_) refuse(fmt::format("its age would be {}, and may be 0 to {}", age, max_age_));
  auto& step = steps_[group.target];
  if (step.contains(group.place)) refuse("it is there");
  step[group.place] = std::move(group);
  ++size_;
}

std::vector<Trajectories> ReplayBuffer::take(int64_t step) {
  if (!ready(step)) fail(ErrorKind::internal, "replay buffer: step {} does not have its {} groups", step, groups_);
  std::vector<Trajectories> groups;
  const auto of_step = steps_.extract(step);
  for (auto& [place, group] : of_step.mapped()) groups.push_back(std::move(group));
  size_ -= groups_;
  taken_ = step;
  return groups;
}

int64_t ReplayBuffer::clear() {
  steps_.clear();
  return std::exchange(size_, 0);
}

}  // namespace hexad::algorithm
