#include "plugins/megatron/local_weights.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "modeling/error.hpp"
#include "modeling/layout/buffer_layout.hpp"

namespace hexad::megatron {
namespace {

namespace layout = modeling::layout;

int64_t numel(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool is_embedding(const modeling::WeightInfo& info) { return info.hf_name == modeling::kEmbeddingName; }

int64_t layer_of(const modeling::WeightInfo& info) { return std::stoll(info.unit.substr(info.unit.find('.') + 1)); }

const char* name_of(int32_t which) {
  return which == HEXAD_WEIGHTS_REFERENCE ? "reference" : which == HEXAD_WEIGHTS_SNAPSHOT ? "snapshot" : "unknown";
}

}  // namespace

std::optional<modeling::TensorPart> part_at(const Settings& settings, const model::RankCoordinates& at,
                                            const modeling::WeightInfo& info) {
  const std::optional<int64_t> expert = modeling::expert_of(info);
  if (!expert) return modeling::tensor_part(settings.model, info, at.tp, settings.sizes.tensor);
  const int64_t each = settings.model.moe->num_experts / settings.sizes.expert;
  if (*expert / each != at.ep) return std::nullopt;
  return modeling::tensor_part(settings.model, info, at.etp, settings.expert_tensor());
}

bool stage_holds(const modeling::ModelConfig& config, const model::Stage& stage, const modeling::WeightInfo& info) {
  if (is_embedding(info)) return stage.embedding || (stage.loss && config.tie_word_embeddings);
  if (info.unit == "head") return stage.loss;
  const int64_t layer = layer_of(info);
  return stage.layers.begin <= layer && layer < stage.layers.end;
}

LocalWeights::LocalWeights(const Settings& settings, const Groups& groups, const model::LayerPlacement& placement,
                           at::Device device)
    : settings_(settings), groups_(groups), device_(device), table_(modeling::weight_table(settings.model)) {
  if (settings.moe.freeze_router)
    for (modeling::WeightInfo& info : table_) info.trainable &= !modeling::is_router(info);
  add_weights(placement);
  add_buckets();
  order_buckets();
  const at::Tensor held =
      at::zeros({sharded() ? owned_elements_ : elements_}, at::TensorOptions(device).dtype(settings.compute_dtype));
  versions_[HEXAD_WEIGHTS_CURRENT] = std::make_unique<WeightVersion>(buckets_, held, sharded(), device);
}

void LocalWeights::add_weights(const model::LayerPlacement& placement) {
  const std::vector<model::Stage>& stages = placement.stages[static_cast<size_t>(groups_.at.pp)];
  std::vector<LocalWeight> untrained;
  for (const modeling::WeightInfo& info : table_) {
    bool held = false, embeds = false;
    for (const model::Stage& stage : stages) {
      held |= stage_holds(settings_.model, stage, info);
      embeds |= stage.embedding;
    }
    const std::optional<modeling::TensorPart> part = part_at(settings_, groups_.at, info);
    if (!held || !part) continue;
    LocalWeight weight{info, *part, modeling::expert_of(info).has_value(), is_embedding(info) && !embeds, {}};
    (weight.trained() ? weights_ : untrained).push_back(std::move(weight));
  }
  std::move(untrained.begin(), untrained.end(), std::back_inserter(weights_));
  for (size_t i = 0; i < weights_.size(); ++i) index_[weights_[i].info.hf_name] = i;
}

void LocalWeights::add_buckets() {
  std::vector<layout::BufferParam> params;
  for (const LocalWeight& weight : weights_) {
    if (!weight.trained()) break;  // they come last
    layout::BufferParam param{numel(weight.part.slice.shape)};
    param.expert = weight.expert;
    param.unit = weight.info.unit;
    // Alone in its bucket, so that both of its stages own the same elements of it.
    param.shared_embedding =
        is_embedding(weight.info) && settings_.model.tie_word_embeddings && settings_.sizes.pipeline > 1;
    params.push_back(param);
  }
  layout::BufferOptions options;
  options.bucket_size = settings_.bucket_size;
  if (!options.bucket_size)
    options.bucket_size =
        layout::default_bucket_size(groups_.dp_cp.size(), settings_.overlap_grad_reduce, groups_.at.pp);
  options.bucket_per_unit = settings_.sharding > Sharding::optim;
  options.data_parallel = groups_.dp_cp_part.size();
  options.expert_data_parallel = groups_.edp_part.size();
  options.distributed_optimizer = settings_.sharding != Sharding::no_shard;
  options.align_plain = true;
  for (const layout::BufferLayout& buffer : layout::buffer_layouts(params, options)) {
    const modeling::Group& owners = buffer.expert ? groups_.edp_part : groups_.dp_cp_part;
    const int64_t rank = buffer.shards > 1 ? owners.rank() : 0;
    for (size_t b = 0; b < buffer.buckets.size(); ++b) {
      const model::Range whole = buffer.buckets[b].range, mine = layout::shard_range(buffer, b, rank);
      WeightBucket bucket;
      bucket.range = {elements_ + whole.begin, elements_ + whole.end};
      bucket.owned = {elements_ + mine.begin, elements_ + mine.end};
      bucket.in_owned = owned_elements_;
      bucket.expert = buffer.expert;
      bucket.owners = owners;
      bucket.replicas = buffer.expert ? groups_.edp_replicas : groups_.dp_cp_replicas;
      for (const layout::ParamShard& shard : layout::param_shards(buffer, b, rank))
        bucket.pieces.push_back({shard.param,
                                 {elements_ + shard.in_buffer.begin, elements_ + shard.in_buffer.end},
                                 {shard.in_param.begin, shard.in_param.end},
                                 owned_elements_ + shard.in_shard.begin});
      owned_elements_ += bucket.owned.size();
      buckets_.push_back(std::move(bucket));
    }
    const size_t first = buckets_.size() - buffer.buckets.size();
    for (const layout::BufferSlot& slot : buffer.slots) {
      LocalWeight& weight = weights_[slot.param];
      weight.in_buffer = {elements_ + slot.range.begin, elements_ + slot.range.end};
      weight.bucket = first + slot.bucket;
      buckets_[weight.bucket].weights.push_back(slot.param);
    }
    elements_ += buffer.numel();
  }
}

// A bucket is wanted when the first of its weights is. Ranks of other experts have other weights, but the same units.
void LocalWeights::order_buckets() {
  const std::vector<std::string> units = modeling::weight_units(settings_.model);
  const auto place = [&](size_t bucket) {
    size_t first = units.size();
    for (size_t weight : buckets_[bucket].weights) {
      const auto found = std::find(units.begin(), units.end(), weights_[weight].info.unit);
      first = std::min(first, static_cast<size_t>(found - units.begin()));
    }
    return first;
  };
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) forward_order_.push_back(bucket);
  std::stable_sort(forward_order_.begin(), forward_order_.end(),
                   [&](size_t a, size_t b) { return place(a) < place(b); });
  for (size_t bucket : forward_order_) {
    std::set<std::string> seen;
    for (size_t weight : buckets_[bucket].weights)
      if (seen.insert(weights_[weight].info.unit).second) unit_buckets_[weights_[weight].info.unit].push_back(bucket);
  }
}

const LocalWeight* LocalWeights::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &weights_[found->second];
}

at::Tensor LocalWeights::slice_of(const at::Tensor& flat, const LocalWeight& weight) const {
  return flat.narrow(0, weight.in_buffer.begin, weight.in_buffer.size()).view(weight.part.slice.shape);
}

const at::Tensor& LocalWeights::leaf(int32_t which, const std::string& name) {
  const size_t index = index_.at(name);
  const LocalWeight& weight = weights_[index];
  if (!weight.trained()) return untrained(which, weight);
  return version(which).leaf(index, weight.bucket, weight.in_buffer, weight.part.slice.shape);
}

const at::Tensor& LocalWeights::untrained(int32_t which, const LocalWeight& weight) {
  require(which);
  return untrained_.at(which).at(weight.info.hf_name);
}

void LocalWeights::set_untrained(const std::string& name, const at::Tensor& value) {
  untrained_.at(HEXAD_WEIGHTS_CURRENT).at(name) = value;
}

void LocalWeights::prefetch(int32_t which, const std::string& unit) {
  for (size_t bucket : unit_buckets_[unit]) version(which).start(bucket);
}

void LocalWeights::acquire(int32_t which, const std::string& unit) {
  prefetch(which, unit);
  for (size_t bucket : unit_buckets_[unit]) version(which).finish(bucket);
}

void LocalWeights::release(int32_t which, const std::string& unit) {
  if (!sharded()) return;
  for (size_t bucket : unit_buckets_[unit]) version(which).release(bucket);
}

void LocalWeights::release_all(int32_t which) {
  const auto found = versions_.find(which);
  if (found != versions_.end()) found->second->release_all();
}

void LocalWeights::gather_owned() {
  settle();
  if (sharded()) return;
  WeightVersion& current = version(HEXAD_WEIGHTS_CURRENT);
  for (size_t bucket : forward_order_) current.gather_in_place(bucket);
  if (settings_.overlap_param_gather) return;
  for (size_t bucket : forward_order_) current.finish(bucket);
}

at::Tensor LocalWeights::owned(const OwnedPiece& piece) const {
  const at::Tensor& held = versions_.at(HEXAD_WEIGHTS_CURRENT)->held();
  return held.narrow(0, sharded() ? piece.in_owned : piece.in_buffer.begin, piece.in_buffer.size());
}

int32_t LocalWeights::kept_kind(int32_t which) {
  if (which != HEXAD_WEIGHTS_REFERENCE && which != HEXAD_WEIGHTS_SNAPSHOT)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weights %d cannot be kept: wanted reference (1) or snapshot (2)", which);
  return which;
}

void LocalWeights::keep(int32_t which) {
  kept_kind(which);
  WeightVersion& current = version(HEXAD_WEIGHTS_CURRENT);
  for (size_t bucket = 0; !sharded() && bucket < buckets_.size(); ++bucket) current.finish(bucket);
  const at::Tensor copy = current.held().to(at::TensorOptions(at::kCPU), /*non_blocking=*/false, /*copy=*/true);
  versions_[which] = std::make_unique<WeightVersion>(buckets_, copy, sharded(), device_);
  untrained_[which] = untrained_[HEXAD_WEIGHTS_CURRENT];
}

WeightVersion& LocalWeights::version(int32_t which) {
  const auto found = versions_.find(which == HEXAD_WEIGHTS_CURRENT ? which : kept_kind(which));
  if (found == versions_.end())
    sdk::fail(HEXAD_FAILED_PRECONDITION, "no %s weights are kept: call keep or load first", name_of(which));
  return *found->second;
}

void LocalWeights::set(int32_t which, const std::function<at::Tensor(const LocalWeight&)>& fill) {
  const at::NoGradGuard no_grad;
  const bool current = which == HEXAD_WEIGHTS_CURRENT;
  if (current) settle();
  const at::Tensor& old = version(HEXAD_WEIGHTS_CURRENT).held();
  const at::Tensor held = current ? old : at::zeros(old.sizes(), old.options().device(at::kCPU));
  for (const WeightBucket& bucket : buckets_) {
    const at::Tensor whole = sharded() ? at::zeros({bucket.range.size()}, held.options())
                                       : held.narrow(0, bucket.range.begin, bucket.range.size());
    for (size_t index : bucket.weights) {
      const LocalWeight& weight = weights_[index];
      whole.narrow(0, weight.in_buffer.begin - bucket.range.begin, weight.in_buffer.size())
          .view(weight.part.slice.shape)
          .copy_(fill(weight));
    }
    if (sharded())
      held.narrow(0, bucket.in_owned, bucket.owned.size())
          .copy_(whole.narrow(0, bucket.owned.begin - bucket.range.begin, bucket.owned.size()));
  }
  if (!current) versions_[kept_kind(which)] = std::make_unique<WeightVersion>(buckets_, held, sharded(), device_);
  std::map<std::string, at::Tensor> untrained;
  for (const LocalWeight& weight : weights_)
    if (!weight.trained())
      untrained[weight.info.hf_name] =
          fill(weight).to(at::TensorOptions(device_).dtype(at::kFloat), /*non_blocking=*/false, /*copy=*/true);
  untrained_[which] = std::move(untrained);
}

at::Tensor LocalWeights::value(int32_t which, const LocalWeight& weight) {
  if (!weight.trained()) return untrained(which, weight);
  const at::NoGradGuard no_grad;
  WeightVersion& from = version(which);
  if (!sharded()) {
    if (which == HEXAD_WEIGHTS_CURRENT) from.finish(weight.bucket);
    return slice_of(from.held(), weight);
  }
  const at::Tensor elements = from.elements(weight.bucket);
  const at::Tensor value =
      elements.narrow(0, weight.in_buffer.begin - bucket_of(weight).range.begin, weight.in_buffer.size())
          .view(weight.part.slice.shape)
          .clone();
  from.release(weight.bucket);
  return value;
}

int64_t LocalWeights::bytes() const {
  int64_t bytes = 0;
  for (const auto& [which, version] : versions_) bytes += version->bytes();
  std::set<const void*> seen;  // versions share what is not trained
  for (const auto& [which, weights] : untrained_)
    for (const auto& [name, weight] : weights)
      if (seen.insert(weight.unsafeGetTensorImpl()).second) bytes += static_cast<int64_t>(weight.nbytes());
  return bytes;
}

void LocalWeights::move_to(at::Device device) {
  version(HEXAD_WEIGHTS_CURRENT).move_to(device);
  std::map<const void*, at::Tensor> moved;
  for (auto& [which, weights] : untrained_)
    for (auto& [name, weight] : weights) {
      at::Tensor& there = moved[weight.unsafeGetTensorImpl()];
      if (!there.defined()) there = weight.to(device);
      weight = there;
    }
}

}  // namespace hexad::megatron
