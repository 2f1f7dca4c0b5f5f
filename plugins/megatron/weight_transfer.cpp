#include "plugins/megatron/weight_transfer.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/services.hpp>

#include "modeling/parallel/tensor/gather.hpp"

namespace hexad::megatron {

WeightTransfer::WeightTransfer(const Settings& settings, const Groups& groups, const model::ParallelGrid& grid,
                               const model::LayerPlacement& placement, LocalWeights& weights,
                               ShardedOptimizer& optimizer)
    : settings_(settings),
      groups_(groups),
      weights_(weights),
      optimizer_(optimizer),
      device_(weights.device()),
      owners_(weights.table().size()) {
  for (int64_t rank = 0; rank < settings.sizes.world; ++rank) {
    const model::RankCoordinates at = grid.coordinates(rank);
    for (size_t i = 0; i < owners_.size(); ++i) {
      const modeling::WeightInfo& info = weights.table()[i];
      const std::optional<modeling::TensorPart> part = part_at(settings, at, info);
      const bool replica = (modeling::expert_of(info) ? at.edp : at.dp_cp) != 0;
      if (!part || replica) continue;
      bool held = false;
      for (const model::Stage& stage : placement.stages[static_cast<size_t>(at.pp)])
        held |=
            stage_holds(settings.model, stage, info) && (info.hf_name != modeling::kEmbeddingName || stage.embedding);
      if (held && part->copy == 0) owners_[i].push_back({static_cast<int32_t>(rank), part->slice});
    }
  }
}

at::Tensor WeightTransfer::whole(size_t index, at::ScalarType dtype, const SliceOf& slice) const {
  const at::NoGradGuard no_grad;
  const modeling::WeightInfo& info = weights_.table()[index];
  const LocalWeight* local = weights_.find(info.hf_name);
  const at::Tensor mine = local ? slice(*local) : at::Tensor();  // collective over the ranks that hold it
  const at::Tensor result = at::empty(info.shape, at::TensorOptions(device_).dtype(dtype));
  for (const Owner& owner : owners_[index]) {
    const bool own = owner.rank == groups_.rank;
    at::Tensor message = at::empty(owner.slice.shape, result.options());
    if (own) message.copy_(mine);
    groups_.world.broadcast(message, owner.rank).wait();
    modeling::box_of(result, owner.slice).copy_(message);
  }
  return result;
}

at::Tensor WeightTransfer::whole(size_t index, const std::string& name) const {
  return whole(index, at::kFloat, [&](const LocalWeight& weight) {
    return weight.trained() ? optimizer_.summed_part(name, weight) : weights_.value(HEXAD_WEIGHTS_CURRENT, weight);
  });
}

void WeightTransfer::layout(hexad_weight_list& out) {
  if (layout_.empty())
    for (const LocalWeight& weight : weights_.weights())
      layout_.add(weight.info.hf_name, weight.info.shape, weight.part.slice.offsets, weight.part.slice.shape, {},
                  dtype_of(weight.info, HEXAD_WEIGHTS_CURRENT));
  layout_.list(out);
}

at::ScalarType WeightTransfer::dtype_of(const modeling::WeightInfo& info, int32_t which) const {
  return which == HEXAD_WEIGHTS_GRADIENTS || !info.trainable ? at::kFloat : settings_.compute_dtype;
}

void WeightTransfer::begin(const hexad_weights_request& request) {
  if (request.form != HEXAD_FORM_FULL && request.form != HEXAD_FORM_SHARD)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weights_begin: unknown form %d", request.form);
  if (request.which != HEXAD_WEIGHTS_GRADIENTS) weights_.require(request.which);  // refuses weights that are not there
  request_ = request;
  at_ = 0;
}

void WeightTransfer::next(hexad_weight_list& out) {
  const at::NoGradGuard no_grad;
  bucket_ = {};
  const size_t count = request_.form == HEXAD_FORM_FULL ? weights_.table().size() : weights_.weights().size();
  while (at_ < count && (bucket_.empty() || bucket_.bytes() < request_.max_bucket_bytes)) add_next();
  bucket_.list(out);
}

void WeightTransfer::add_next() {
  const bool gradients = request_.which == HEXAD_WEIGHTS_GRADIENTS, slices = request_.form == HEXAD_FORM_SHARD;
  const size_t index = at_++;
  const modeling::WeightInfo& info = slices ? weights_.weights()[index].info : weights_.table()[index];
  if (gradients && !info.trainable) return;
  const auto slice = [&](const LocalWeight& weight) {
    return gradients ? optimizer_.summed_part("grad", weight) : weights_.value(request_.which, weight);
  };
  const at::ScalarType dtype = dtype_of(info, request_.which);
  if (slices) {
    const LocalWeight& weight = weights_.weights()[index];
    bucket_.add(info.hf_name, info.shape, weight.part.slice.offsets, weight.part.slice.shape,
                slice(weight).detach().to(at::TensorOptions(device_).dtype(dtype)), dtype);
  } else {
    bucket_.add(info.hf_name, info.shape, std::vector<int64_t>(info.shape.size(), 0), info.shape,
                whole(index, dtype, slice), dtype);
  }
}

void WeightTransfer::end() {
  bucket_ = {};
  at_ = weights_.table().size();
}

}  // namespace hexad::megatron
