// Weights on their way out: to a generator (refit), to tests (gradients), as whole tensors or as this rank's slices.
#pragma once
#include <deque>
#include <vector>

#include <hexad/abi.h>

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
  // Slices and what they point to.
  struct Bucket {
    std::vector<hexad_weight_slice> slices;
    std::deque<at::Tensor> tensors;
    std::deque<DLTensor> views;
    std::deque<std::vector<int64_t>> dims;
  };

  at::ScalarType dtype() const;
  void add(Bucket& bucket, const ShardedParam& param, const modeling::Range& rows, const at::Tensor& data) const;
  void add_next(Bucket& bucket);
  void add_frozen(Bucket& bucket);

  ShardedModel& model_;
  Bucket layout_, bucket_;
  hexad_weights_request request_{};
  size_t unit_ = 0, param_ = 0, frozen_ = 0;  // what comes next
};

}  // namespace hexad::dtensor
