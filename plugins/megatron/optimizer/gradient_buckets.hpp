// Gradients on their way from the backward pass to the ranks that own them: added up over micro-batches in buckets, and
// each bucket summed over its owners as soon as its last gradient is there (overlap_grad_reduce), or all at the end.
//   no_shard: every rank gets the whole sum; optim: its share of it; both once a call of train;
//   optim_grads, optim_grads_params: its share after every micro-batch, and nothing else is kept.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plugins/megatron/local_weights.hpp"

namespace hexad::megatron {

class GradientBuckets {
 public:
  GradientBuckets(const Settings& settings, const Groups& groups, const LocalWeights& weights);

  // Begins a call of train of so many micro-batches, empty ones included. `places`: how often a micro-batch's backward
  // pass will say done() of each weight.
  void begin(int64_t microbatches, std::vector<int64_t> places);
  void add(const LocalWeight& weight, const at::Tensor& grad);
  // Of the weight's slice; for what is added in place.
  at::Tensor accumulator(const LocalWeight& weight);
  // A place of the model adds nothing more to the weight in this micro-batch. Every rank of a group says so in the same
  // order: the sums over tensor-parallel and data-parallel ranks begin here. Collective.
  void done(const LocalWeight& weight);
  // Ends the call: what was not sent is, and all has arrived. Sums of earlier calls are added. Collective.
  void finish();
  void drop() noexcept;

  // The summed gradient of what this rank owns, in the main gradients' type; undefined before the first finish().
  at::Tensor sum(const OwnedPiece& piece) const;
  bool present() const { return sums_.defined() || flat_.defined(); }
  void scale(double factor);
  int64_t bytes() const;

 private:
  struct State {
    at::Tensor elements;                     // accumulates: of the bucket's range
    at::Tensor part;                         // arrives: of the owned elements, where it is no view of them
    std::vector<modeling::Pending> partial;  // sums over tensor-parallel ranks, before it is sent
    modeling::Pending under_way;
    int64_t missing = 0;  // weights that are not done
    bool sent = false;
  };
  bool every_microbatch() const { return settings_.sharding > Sharding::optim; }
  int64_t awaited(size_t bucket) const;
  at::Tensor slice(size_t bucket, const modeling::Range& in_buffer);
  void sum_partial(const LocalWeight& weight);
  void send(size_t bucket);
  void arrive(size_t bucket);
  void sum_tied_embedding();
  void keep_sums();
  void convert();
  at::Tensor sum_of(const WeightBucket& bucket) const;

  const Settings& settings_;
  const Groups& groups_;
  const LocalWeights& weights_;
  std::vector<State> states_;
  std::vector<int64_t> places_, done_;  // by weight
  int64_t microbatches_ = 0;
  at::Tensor flat_;     // all elements of all buckets, in the type that is reduced; the owned ones become sums in place
  at::Tensor sums_;     // [owned elements], where the sums are not in flat_
  at::Tensor earlier_;  // [owned elements], of earlier calls
  std::optional<size_t> last_sent_;
};

}  // namespace hexad::megatron
