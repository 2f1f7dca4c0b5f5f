#include "plugins/megatron/optimizer/gradient_buckets.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace hexad::megatron {
GradientBuckets::GradientBuckets(const Settings& settings, const Groups& groups, const LocalWeights& weights)
    : settings_(settings), groups_(groups), weights_(weights), states_(weights.buckets().size()) {}

void GradientBuckets::begin(int64_t microbatches, std::vector<int64_t> places) {
  const at::NoGradGuard no_grad;
  keep_sums();
  microbatches_ = microbatches;
  places_ = std::move(places);
  done_.assign(places_.size(), 0);
  for (size_t bucket = 0; bucket < states_.size(); ++bucket) {
    states_[bucket] = {};
    states_[bucket].missing = awaited(bucket);
  }
  last_sent_.reset();
  const at::TensorOptions device(weights_.device());
  if (every_microbatch()) {
    sums_ = at::zeros({weights_.owned_elements()}, device.dtype(settings_.main_gradient_dtype));
    return;
  }
  flat_ = at::zeros({weights_.elements()}, device.dtype(settings_.gradient_dtype));
  for (size_t bucket = 0; bucket < states_.size(); ++bucket)
    states_[bucket].elements = narrow(flat_, weights_.buckets()[bucket].range);
}

// Weights of the bucket that done() will be said of.
int64_t GradientBuckets::awaited(size_t bucket) const {
  const std::vector<size_t>& weights = weights_.buckets()[bucket].weights;
  return std::count_if(weights.begin(), weights.end(), [&](size_t weight) { return places_[weight] > 0; });
}

// What earlier calls have summed moves out of the way.
void GradientBuckets::keep_sums() {
  if (!sums_.defined() && flat_.defined()) {
    sums_ = at::empty({weights_.owned_elements()}, flat_.options());
    for (const WeightBucket& bucket : weights_.buckets())
      sums_.narrow(0, bucket.in_owned, bucket.owned.size()).copy_(narrow(flat_, bucket.owned));
  }
  earlier_ = std::move(sums_);
  sums_ = flat_ = at::Tensor();
}

at::Tensor GradientBuckets::slice(size_t bucket, const modeling::Range& in_buffer) {
  const WeightBucket& layout = weights_.buckets()[bucket];
  if (states_[bucket].part.defined()) arrive(bucket);  // of a tied weight, which the next micro-batch begins with
  at::Tensor& elements = states_[bucket].elements;
  if (!elements.defined())
    elements = at::zeros({layout.range.size()}, at::TensorOptions(weights_.device()).dtype(settings_.gradient_dtype));
  return elements.narrow(0, in_buffer.begin - layout.range.begin, in_buffer.size());
}

at::Tensor GradientBuckets::accumulator(const LocalWeight& weight) {
  return slice(weight.bucket, weight.in_buffer).view(weight.part.slice.shape);
}

void GradientBuckets::add(const LocalWeight& weight, const at::Tensor& grad) {
  const at::NoGradGuard no_grad;
  accumulator(weight).add_(grad);
}

// Weight by weight: buckets of tensor-parallel ranks may end at other weights, where slices are not equal.
void GradientBuckets::sum_partial(const LocalWeight& weight) {
  const modeling::Group group =
      modeling::sum_group(weight.part.gradient, {groups_.tp, settings_.sequence_parallel}, groups_.equal_heads);
  if (group.size() > 1) states_[weight.bucket].partial.push_back(group.all_reduce(accumulator(weight)));
}

void GradientBuckets::done(const LocalWeight& weight) {
  if (!settings_.overlap_grad_reduce && !every_microbatch()) return;
  const at::NoGradGuard no_grad;
  const size_t index = weights_.index(weight);
  if (++done_[index] < places_[index] * (every_microbatch() ? 1 : microbatches_)) return;
  done_[index] = 0;
  sum_partial(weight);
  State& state = states_[weight.bucket];
  if (--state.missing > 0) return;
  send(weight.bucket);
  if (every_microbatch()) state.missing = awaited(weight.bucket);
}

void GradientBuckets::send(size_t bucket) {
  const WeightBucket& layout = weights_.buckets()[bucket];
  State& state = states_[bucket];
  for (modeling::Pending& partial : state.partial) partial.wait();
  state.partial.clear();
  const at::Tensor elements = slice(bucket, layout.range);
  state.sent = true;
  if (!every_microbatch()) {
    // In place: the sum takes the place of this rank's own gradients.
    const at::Tensor own = narrow(flat_, layout.owned);
    state.under_way = settings_.sharding == Sharding::no_shard ? layout.owners.all_reduce(elements)
                      : layout.owners.size() > 1               ? layout.owners.reduce_scatter(own, elements)
                                                               : modeling::Pending();
    return;
  }
  if (last_sent_) arrive(*last_sent_);  // one bucket is under way while the next fills
  last_sent_ = bucket;
  state.part = at::empty({layout.owned.size()}, elements.options());
  state.under_way = layout.owners.reduce_scatter(state.part, elements);
}

void GradientBuckets::arrive(size_t bucket) {
  State& state = states_[bucket];
  state.under_way.wait();
  if (!state.part.defined()) return;
  sum_of(weights_.buckets()[bucket]).add_(state.part);
  state.part = state.elements = at::Tensor();
}

at::Tensor GradientBuckets::sum_of(const WeightBucket& bucket) const {
  return sums_.defined() ? sums_.narrow(0, bucket.in_owned, bucket.owned.size()) : narrow(flat_, bucket.owned);
}

at::Tensor GradientBuckets::sum(const OwnedPiece& piece) const {
  if (!present()) return {};
  return sums_.defined() ? sums_.narrow(0, piece.in_owned, piece.in_buffer.size()) : narrow(flat_, piece.in_buffer);
}

void GradientBuckets::finish() {
  const at::NoGradGuard no_grad;
  const bool counted = settings_.overlap_grad_reduce || every_microbatch();
  if (!counted || microbatches_ == 0)
    for (const LocalWeight& weight : weights_.weights())
      if (weight.trained()) sum_partial(weight);
  for (size_t bucket = 0; bucket < states_.size(); ++bucket)
    if (!states_[bucket].sent) send(bucket);
  for (size_t bucket = 0; bucket < states_.size(); ++bucket) arrive(bucket);
  if (!every_microbatch() && settings_.main_gradient_dtype != settings_.gradient_dtype) convert();
  for (State& state : states_) state.elements = at::Tensor();
  for (const WeightBucket& bucket : weights_.buckets()) bucket.replicas.all_reduce(sum_of(bucket)).wait();
  sum_tied_embedding();
  if (!earlier_.defined()) return;
  for (const WeightBucket& bucket : weights_.buckets())
    sum_of(bucket).add_(earlier_.narrow(0, bucket.in_owned, bucket.owned.size()));
  earlier_ = at::Tensor();
}

// The optimizer reads another type than is reduced.
void GradientBuckets::convert() {
  const at::Tensor converted =
      at::empty({weights_.owned_elements()}, flat_.options().dtype(settings_.main_gradient_dtype));
  for (const WeightBucket& bucket : weights_.buckets())
    converted.narrow(0, bucket.in_owned, bucket.owned.size()).copy_(narrow(flat_, bucket.owned));
  sums_ = converted;
  flat_ = at::Tensor();
}

// The first and the last stage own the same elements of it: each adds the other's sum.
void GradientBuckets::sum_tied_embedding() {
  const LocalWeight* embedding =
      settings_.model.tie_word_embeddings ? weights_.find(modeling::kEmbeddingName) : nullptr;
  if (!embedding || groups_.embedding.size() == 1) return;
  for (const OwnedPiece& piece : weights_.bucket_of(*embedding).pieces)
    if (&weights_.weights()[piece.weight] == embedding) groups_.embedding.all_reduce(sum(piece)).wait();
}

void GradientBuckets::scale(double factor) {
  const at::NoGradGuard no_grad;
  for (const WeightBucket& bucket : weights_.buckets()) sum_of(bucket).mul_(factor);
}

void GradientBuckets::drop() noexcept {
  for (State& state : states_) {
    for (modeling::Pending& partial : state.partial) partial.settle();
    state.under_way.settle();
    state = {};
  }
  flat_ = sums_ = earlier_ = at::Tensor();
}

int64_t GradientBuckets::bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : {flat_, sums_, earlier_})
    if (tensor.defined()) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace hexad::megatron
