// The optimizer over the data-parallel ranks: each owns an equal part of every bucket (Megatron's distributed
// optimizer, ZeRO-1), or every rank owns all of it.
#pragma once
#include <string>
#include <vector>

#include "modeling/parallel/optimizer.hpp"
#include "plugins/megatron/optimizer/gradient_buckets.hpp"
#include "plugins/megatron/optimizer/master_weights.hpp"

namespace hexad::megatron {

class ShardedOptimizer {
 public:
  ShardedOptimizer(const Settings& settings, const Groups& groups, LocalWeights& weights,
                   const GradientBuckets& gradients);

  // L2 norm of the gradient of the whole model, each element counted once. Collective over the world.
  double gradient_norm() const;
  // One update of what this rank owns; then every rank gets the new parameters. Collective.
  void step(double lr, double weight_decay);

  // The masters take over parameters that were written.
  void parameters_changed();

  // The slice of masters, gradients or a state, put together from its owners' parts. Names: "" masters, "grad", or a
  // state's. Collective over the ranks that hold the weight's slice.
  at::Tensor summed_part(const std::string& name, const LocalWeight& weight);
  // Writes the owned part of masters (and of the parameters that stand for them) or a state from the whole slice.
  void set(const std::string& name, const LocalWeight& weight, const at::Tensor& slice);

  std::vector<std::string> state_names() const { return optimizers_[0].state_names(); }
  int64_t steps() const { return optimizers_[0].steps(); }
  void set_steps(int64_t steps);
  int64_t master_bytes() const { return masters_.bytes(); }
  int64_t state_bytes() const;
  // What lies on the device, masters and states, moves to the host or back.
  void move_to(at::Device device);

 private:
  // Pieces that are updated alike, in order: decayed or not, on the device or the host.
  struct Place {
    size_t optimizer, index;
  };
  static constexpr size_t kDecays = 1, kOnHost = 2;  // bits of an optimizer's number
  bool counts(const LocalWeight& weight) const;
  // Of a slice's shape: zero where this rank owns nothing, so that the sum over the owners is the slice.
  at::Tensor owned_part(const std::string& name, const LocalWeight& weight);
  at::Tensor value(const std::string& name, size_t piece);
  at::Tensor like(size_t piece) const;
  void update(size_t optimizer, double lr, double weight_decay);

  const Settings& settings_;
  const Groups& groups_;
  LocalWeights& weights_;
  const GradientBuckets& gradients_;
  MasterWeights masters_;
  std::vector<modeling::Optimizer> optimizers_;  // by number
  std::vector<size_t> pieces_of_[4];             // by optimizer
  std::vector<Place> places_;                    // by piece
};

}  // namespace hexad::megatron
