#include "plugins/megatron/weight_version.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/parallel/storage.hpp"

namespace hexad::megatron {
WeightVersion::WeightVersion(const std::vector<WeightBucket>& buckets, at::Tensor held, bool sharded, at::Device device)
    : buckets_(buckets), held_(std::move(held)), sharded_(sharded), device_(device), states_(buckets.size()) {}

void WeightVersion::bind(size_t bucket) {
  State& state = states_[bucket];
  if (state.full.defined()) return;
  const modeling::Range& range = buckets_[bucket].range;
  state.full = aliases() ? narrow(held_, range) : at::empty({range.size()}, held_.options().device(device_));
}

void WeightVersion::start(size_t bucket) {
  const at::NoGradGuard no_grad;
  State& state = states_[bucket];
  bind(bucket);
  if (aliases() || state.ready || state.part.defined()) return;
  modeling::allocate_storage(state.full);
  const WeightBucket& layout = buckets_[bucket];
  if (!sharded_) {
    state.full.copy_(narrow(held_, layout.range), /*non_blocking=*/true);
    state.ready = true;
    return;
  }
  state.part = held_.narrow(0, layout.in_owned, layout.owned.size()).to(device_);
  state.under_way = layout.owners.all_gather(state.full, state.part);
}

void WeightVersion::finish(size_t bucket) {
  start(bucket);
  State& state = states_[bucket];
  state.under_way.wait();
  state.part = at::Tensor();
  state.ready = true;
}

const at::Tensor& WeightVersion::leaf(size_t weight, size_t bucket, const modeling::Range& in_buffer,
                                      const std::vector<int64_t>& shape) {
  finish(bucket);
  const auto found = leaves_.find(weight);
  if (found != leaves_.end()) return found->second;
  const at::NoGradGuard no_grad;
  // Detached from the bucket's views, so that writing to the bucket is no in-place change of a leaf.
  const at::Tensor& full = states_[bucket].full;
  at::Tensor leaf = at::empty({0}, full.options());
  leaf.set_(full.storage(), full.storage_offset() + in_buffer.begin - buckets_[bucket].range.begin, shape);
  return leaves_[weight] = leaf.requires_grad_(true);
}

at::Tensor WeightVersion::elements(size_t bucket) {
  finish(bucket);
  return states_[bucket].full;
}

void WeightVersion::release(size_t bucket) {
  State& state = states_[bucket];
  if (aliases() || !state.full.defined()) return;
  state.under_way.settle();  // of a unit that was not used after all
  state.part = at::Tensor();
  state.ready = false;
  modeling::free_storage(state.full);
}

void WeightVersion::release_all() {
  for (size_t bucket = 0; bucket < states_.size(); ++bucket) release(bucket);
}

void WeightVersion::changed() {
  for (size_t bucket = 0; bucket < states_.size(); ++bucket) states_[bucket].under_way.wait();
  release_all();
}

void WeightVersion::gather_in_place(size_t bucket) {
  const WeightBucket& layout = buckets_[bucket];
  if (layout.owned.size() == layout.range.size()) return;
  states_[bucket].under_way = layout.owners.all_gather(narrow(held_, layout.range), narrow(held_, layout.owned));
}

void WeightVersion::move_to(at::Device device) {
  changed();
  held_ = held_.to(device);
  states_ = std::vector<State>(buckets_.size());
  leaves_.clear();
}

int64_t WeightVersion::bytes() const {
  auto bytes = static_cast<int64_t>(held_.nbytes());
  for (const State& state : states_)
    if (!aliases() && state.full.defined() && modeling::has_storage(state.full))
      bytes += static_cast<int64_t>(state.full.nbytes());
  return bytes;
}

}  // namespace hexad::megatron
