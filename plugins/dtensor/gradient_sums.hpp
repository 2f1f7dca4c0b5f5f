// What FSDP's reduce-scatter leaves to sum: gradients that tensor-parallel ranks have each seen a part of, and those of
// the copies of a shard (HSDP).
#pragma once
#include <vector>

#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

class GradientSums {
 public:
  GradientSums(ShardedModel& model, bool sequence_parallel) : model_(model), sequence_parallel_(sequence_parallel) {}

  // Around one train call. What earlier calls have summed is put aside, so that it is summed once. Collective.
  void begin();
  void finish();
  // After an exception: forgets what was put aside.
  void abandon() { earlier_.clear(); }

  // Shards of the gradients, each element of the model on one rank of the world alone: what a norm is taken of.
  std::vector<at::Tensor> counted(const std::vector<at::Tensor>& grads) const;

 private:
  void sum_parts(ShardedUnit& unit, modeling::GradientSum kind);

  ShardedModel& model_;
  bool sequence_parallel_;
  std::vector<at::Tensor> earlier_;  // of each unit, undefined when there is nothing
};

}  // namespace hexad::dtensor
