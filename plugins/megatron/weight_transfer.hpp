// Whole weights from slices, whatever the layout: the one mechanism of refit, checkpoints and converters. Every rank
// knows from the grid alone who owns which slice of which weight.
#pragma once
#include <functional>
#include <vector>

#include <hexad/abi.h>

#include "modeling/backend/weight/bucket.hpp"
#include "plugins/megatron/local_weights.hpp"
#include "plugins/megatron/optimizer/sharded_optimizer.hpp"

namespace hexad::megatron {

class WeightTransfer {
 public:
  WeightTransfer(const Settings& settings, const Groups& groups, const model::ParallelGrid& grid,
                 const model::LayerPlacement& placement, LocalWeights& weights, ShardedOptimizer& optimizer);

  // The whole weight `index` of the table on every rank of the world, put together from its owners' slices, which
  // slice(weight) gives on the ranks that hold the weight (whether they own it or not). Collective.
  using SliceOf = std::function<at::Tensor(const LocalWeight& weight)>;
  at::Tensor whole(size_t index, at::ScalarType dtype, const SliceOf& slice) const;
  // The same for masters ("", with the weights that are not trained), gradients ("grad") or a state of the optimizer,
  // fp32.
  at::Tensor whole(size_t index, const std::string& name) const;

  // hexad_backend_vtable's weight functions. Weights come in the compute dtype, gradients and what is not trained in
  // fp32.
  void layout(hexad_weight_list& out);
  void begin(const hexad_weights_request& request);
  void next(hexad_weight_list& out);
  void end();

 private:
  struct Owner {
    int32_t rank;
    modeling::WeightSlice slice;
  };
  void add_next();  // nothing where there is none: the gradient of a weight that is not trained
  at::ScalarType dtype_of(const modeling::WeightInfo& info, int32_t which) const;

  const Settings& settings_;
  const Groups& groups_;
  LocalWeights& weights_;
  ShardedOptimizer& optimizer_;
  at::Device device_;
  std::vector<std::vector<Owner>> owners_;  // by weight of the table; together they cover it
  modeling::WeightBucket layout_, bucket_;
  hexad_weights_request request_{};
  size_t at_ = 0;  // what comes next
};

}  // namespace hexad::megatron
