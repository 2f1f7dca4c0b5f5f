// Weights on their way out: to a generator (refit), to tests (gradients), as whole tensors or as this rank's slices.
#pragma once
#include "modeling/backend/weight_bucket.hpp"
#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

class WeightExport {
 public:
  explicit WeightExport(ShardedModel& model) : model_(model) {}

  // This rank's slices, without data; valid as long as this object.
  void layout(hexad_weight_list& out);
  // Weights come in the compute dtype (frozen ones last, and in fp32), gradients in fp32. Every rank takes part in every next of HEXAD_FORM_FULL.
  void begin(const hexad_weights_request& request);
  void next(hexad_weight_list& out);
  void end();

 private:
  at::ScalarType dtype() const;
  void add(modeling::WeightBucket& bucket, const modeling::WeightInfo& info, const modeling::WeightSlice& slice,
           const at::Tensor& data) const;
  void add_next();
  void add_frozen();

  ShardedModel& model_;
  modeling::WeightBucket layout_, bucket_;
  hexad_weights_request request_{};
  size_t place_ = 0, frozen_ = 0;  // what comes next
};

}  // namespace hexad::dtensor
