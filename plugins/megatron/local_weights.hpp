// The weights that this rank holds: the slices of its stages' weights, end to end in buckets (experts behind, in some
// of their own), and the versions of them: current, reference, snapshot. Weights that no gradient moves lie beside the
// buckets, in fp32.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lib/model/layer_placement.hpp"
#include "modeling/parallel/tensor/plan.hpp"
#include "plugins/megatron/groups.hpp"
#include "plugins/megatron/settings/settings.hpp"
#include "plugins/megatron/weight_version.hpp"

namespace hexad::megatron {

struct LocalWeight {
  modeling::WeightInfo info;  // whole shape
  modeling::TensorPart part;
  bool expert = false;        // of an expert, which lies on the expert grid
  bool tied_copy = false;     // the last stage's copy of a tied embedding, which the first one owns
  modeling::Range in_buffer;  // elements; of a weight that is not trained: none
  size_t bucket = 0;          // likewise

  bool trained() const { return info.trainable; }

  // Norms and checkpoints take each element from one rank.
  bool owned() const { return part.copy == 0 && !tied_copy; }
};

// What the rank at these coordinates holds of a weight; absent: nothing, because it is another rank's expert.
std::optional<modeling::TensorPart> part_at(const Settings& settings, const model::RankCoordinates& at,
                                            const modeling::WeightInfo& info);

// Does a rank at (pipeline rank, chunks) hold the weight? A tied embedding lies on the first and on the last stage.
bool stage_holds(const modeling::ModelConfig& config, const model::Stage& stage, const modeling::WeightInfo& info);

class LocalWeights {
 public:
  LocalWeights(const Settings& settings, const Groups& groups, const model::LayerPlacement& placement,
               at::Device device);

  // Of the whole model; what settings freeze is not trainable here.
  const std::vector<modeling::WeightInfo>& table() const { return table_; }
  // Those that are trained first.
  const std::vector<LocalWeight>& weights() const { return weights_; }
  const std::vector<WeightBucket>& buckets() const { return buckets_; }
  const WeightBucket& bucket_of(const LocalWeight& weight) const { return buckets_[weight.bucket]; }
  size_t index(const LocalWeight& weight) const { return static_cast<size_t>(&weight - weights_.data()); }
  // Null if this rank does not hold it.
  const LocalWeight* find(const std::string& name) const;
  int64_t elements() const { return elements_; }  // of all buckets, gaps and padding included
  int64_t owned_elements() const { return owned_elements_; }
  at::Device device() const { return device_; }

  // A trained weight's slice of a flat tensor of all elements.
  at::Tensor slice_of(const at::Tensor& flat, const LocalWeight& weight) const;

  // A leaf of the current weights or a kept version; it requires a gradient if the weight is trained. What is sharded
  // is gathered for it and stays until its unit is released: acquire makes a unit ready, prefetch begins to. Under
  // sharding these are collective over the data-parallel ranks; releasing is not.
  const at::Tensor& leaf(int32_t which, const std::string& name);
  void prefetch(int32_t which, const std::string& unit);
  void acquire(int32_t which, const std::string& unit);
  void release(int32_t which, const std::string& unit);
  // Drops what a call has put together of a version.
  void release_all(int32_t which);

  // The current weights changed in this rank's owned pieces: its other owners' come, one bucket after the other in the
  // order in which the forward pass wants them. With overlap_param_gather each is waited for at its first use.
  // Collective.
  void gather_owned();
  // Waits for what is under way, so that the current weights may be written.
  void settle() { version(HEXAD_WEIGHTS_CURRENT).changed(); }
  // What this rank owns of the current weights, flat.
  at::Tensor owned(const OwnedPiece& piece) const;

  // A copy in the compute dtype on the host, under HEXAD_WEIGHTS_REFERENCE or _SNAPSHOT.
  void keep(int32_t which);
  // Replaces weights: fill(weight) returns the slice, in any dtype.
  void set(int32_t which, const std::function<at::Tensor(const LocalWeight&)>& fill);
  // Replaces a current weight that is not trained.
  void set_untrained(const std::string& name, const at::Tensor& value);
  // The weight's slice, in fp32 if it is not trained. Collective over the ranks that share the weight when it is
  // sharded.
  at::Tensor value(int32_t which, const LocalWeight& weight);
  // Throws sdk::Error when weights of `which` were never kept.
  void require(int32_t which) { version(which); }
  int64_t bytes() const;  // of all versions, what is put together for use included

  // Current weights, and what is not trained of any version, move between the device and the host; they are used on the
  // device only.
  void move_to(at::Device device);

 private:
  void add_weights(const model::LayerPlacement& placement);
  void add_buckets();
  void order_buckets();
  bool sharded() const { return settings_.sharding == Sharding::optim_grads_params; }
  WeightVersion& version(int32_t which);
  const at::Tensor& untrained(int32_t which, const LocalWeight& weight);
  static int32_t kept_kind(int32_t which);

  const Settings& settings_;
  const Groups& groups_;
  at::Device device_;
  std::vector<modeling::WeightInfo> table_;
  std::vector<LocalWeight> weights_;
  std::map<std::string, size_t> index_;  // by name
  std::vector<WeightBucket> buckets_;
  std::vector<size_t> forward_order_;                        // of buckets
  std::map<std::string, std::vector<size_t>> unit_buckets_;  // in that order
  int64_t elements_ = 0, owned_elements_ = 0;
  std::map<int32_t, std::unique_ptr<WeightVersion>> versions_;
  // fp32, where the current weights lie, by version and name; never written to, but replaced. Versions share tensors.
  std::map<int32_t, std::map<std::string, at::Tensor>> untrained_;
};

}  // namespace hexad::megatron
