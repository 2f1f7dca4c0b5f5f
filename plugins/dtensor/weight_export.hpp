// Weights on their way out: to a generator (refit), to tests (gradients), as whole tensors or as this rank's slices.
// Whole weights are those of units that are unsharded as for a forward pass: one collective a unit, the next one's
// beside the copies that the receiver makes of this one; in memory are the units of a bucket and the next. With one
// rank they are the weights that training reads, without a copy.
#pragma once
#include "modeling/backend/weight/bucket.hpp"
#include "plugins/dtensor/sharded_model.hpp"

namespace hexad::dtensor {

class WeightExport {
 public:
  explicit WeightExport(ShardedModel& model) : model_(model) {}

  // This rank's slices, without data; valid as long as this object.
  void layout(hexad_weight_list& out);
  // Weights come in the compute dtype (frozen ones last, and in fp32), gradients in fp32. Every rank takes part in
  // every next of HEXAD_FORM_FULL. What a bucket refers to may be read until the next call by what its stream is given.
  void begin(const hexad_weights_request& request);
  void next(hexad_weight_list& out);
  void end();

 private:
  at::ScalarType dtype() const;
  void add(modeling::WeightBucket& bucket, const modeling::WeightInfo& info, const modeling::WeightSlice& slice,
           const at::Tensor& data) const;
  bool unshards() const { return request_.form == HEXAD_FORM_FULL && request_.which != HEXAD_WEIGHTS_GRADIENTS; }
  at::Tensor whole(const WeightPlace& place);
  void add_next();
  void add_frozen();
  void unshard_to(size_t unit);
  void reshard_done();
  void break_off();

  ShardedModel& model_;
  modeling::WeightBucket layout_, bucket_;
  hexad_weights_request request_{};
  size_t place_ = 0, frozen_ = 0;   // what comes next
  std::vector<size_t> last_place_;  // of each unit, in model_.places()
  size_t unsharded_ = 0;            // units before this one are, or were; it is itself on its way unless it is 0
  size_t resharded_ = 0;            // units before this one are not needed any more
};

}  // namespace hexad::dtensor
