// Finished groups that wait for their step (NeMo-RL's replay buffer): a group is generated for one step, whose weights
// may be newer than those that began it by so many steps and no more.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/rollout/turns.hpp"

namespace hexad::algorithm {

// The samples of one prompt.
struct Trajectories {
  int64_t target = 0;                     // the step that trains on them, from 1
  int64_t place = 0;                      // among the groups of that step
  int64_t version = 0;                    // steps that the weights had been trained for when it was submitted
  std::shared_ptr<rollout::Turns> turns;  // scored, of as many turns as they had
};

// Steps since the weights that began a group, in the step that trains on it.
inline int64_t age_of(const Trajectories& group) { return group.target - 1 - group.version; }

class ReplayBuffer {
 public:
  // `groups` a step. Holds at most groups * max(1, max_age) * 2.
  ReplayBuffer(int64_t groups, int64_t max_age);

  int64_t capacity() const { return capacity_; }
  int64_t size() const { return size_; }
  bool full() const { return size_ == capacity_; }

  // How many groups of the step there are; whether all are.
  int64_t held(int64_t step) const;
  bool ready(int64_t step) const { return held(step) == groups_; }
  // Throws Error(internal) where it is full, has this place of this step, where the step has been taken, or the group
  // is older than it may be.
  void add(Trajectories group);
  // All groups of the step in the order of their places. Throws Error(internal) unless it is ready.
  std::vector<Trajectories> take(int64_t step);
  // Throws all groups away; returns how many.
  int64_t clear();

 private:
  int64_t groups_, max_age_, capacity_;
  int64_t size_ = 0, taken_ = 0;  // `taken_`: the newest step
  std::map<int64_t, std::map<int64_t, Trajectories>> steps_;
};

}  // namespace hexad::algorithm
