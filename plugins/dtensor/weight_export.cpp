#include "plugins/dtensor/weight_export.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <hexad/services.hpp>

namespace hexad::dtensor {

at::ScalarType WeightExport::dtype() const {
  return request_.which == HEXAD_WEIGHTS_GRADIENTS ? at::kFloat : model_.options().compute_dtype;
}

// `data` undefined: a layout.
void WeightExport::add(modeling::WeightBucket& bucket, const modeling::WeightInfo& info,
                       const modeling::WeightSlice& slice, const at::Tensor& data) const {
  bucket.add(info.hf_name, info.shape, slice.offsets, slice.shape, data,
             info.trainable ? model_.options().compute_dtype : at::kFloat);
}

void WeightExport::layout(hexad_weight_list& out) {
  if (layout_.empty()) {
    for (const WeightPlace& place : model_.places()) {
      if (!model_.holds(place)) continue;
      const ShardedParam& param = model_.units()[place.unit].params()[place.param];
      if (param.rows.size() > 0) add(layout_, *place.info, param.slice(), {});
    }
    if (model_.groups().world.rank() == 0)
      for (const ShardedParam& param : model_.frozen_params()) add(layout_, param.info, param.slice(), {});
  }
  layout_.list(out);
}

void WeightExport::begin(const hexad_weights_request& request) {
  if (request.form != HEXAD_FORM_FULL && request.form != HEXAD_FORM_SHARD)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weights_begin: unknown form %d", request.form);
  model_.shards(0, request.which);  // refuses weights that are not there
  request_ = request;
  place_ = frozen_ = 0;
  unsharded_ = resharded_ = 0;
  last_place_.assign(model_.units().size(), 0);
  for (size_t i = 0; i < model_.places().size(); ++i) last_place_[model_.places()[i].unit] = i;
}

void WeightExport::unshard_to(size_t unit) {
  std::vector<ShardedUnit>& units = model_.units();
  for (; unsharded_ <= unit; ++unsharded_) units[unsharded_].unshard(model_.shards(unsharded_, request_.which));
  if (unsharded_ < units.size()) units[unsharded_].prefetch(model_.shards(unsharded_, request_.which));
}

// Units whose last weight was in a bucket before this one.
void WeightExport::reshard_done() {
  for (; resharded_ < unsharded_ && last_place_[resharded_] < place_; ++resharded_)
    model_.units()[resharded_].reshard();
}

at::Tensor WeightExport::whole(const WeightPlace& place) {
  if (unshards()) {
    if (place.unit >= unsharded_) unshard_to(place.unit);
    return model_.whole(place);
  }
  return model_.whole(place, dtype(), [&](size_t unit, size_t param) {
    return model_.units()[unit].rows_of(model_.shards(unit, request_.which), param);
  });
}

void WeightExport::next(hexad_weight_list& out) {
  const at::NoGradGuard no_grad;
  bucket_ = {};
  reshard_done();
  const size_t places = model_.places().size(), frozen = model_.frozen_params().size();
  while ((place_ < places || frozen_ < frozen) && (bucket_.empty() || bucket_.bytes() < request_.max_bucket_bytes))
    place_ < places ? add_next() : add_frozen();
  bucket_.list(out);
}

void WeightExport::add_next() {
  const WeightPlace& place = model_.places()[place_++];
  if (request_.form == HEXAD_FORM_FULL) {
    const modeling::WeightSlice whole{std::vector<int64_t>(place.info->shape.size(), 0), place.info->shape};
    add(bucket_, *place.info, whole, this->whole(place));
    return;
  }
  if (!model_.holds(place)) return;
  const ShardedUnit& unit = model_.units()[place.unit];
  const ShardedParam& param = unit.params()[place.param];
  const auto options = at::TensorOptions(model_.options().compute_device).dtype(dtype());
  if (param.rows.size() == 0) return;
  const at::Tensor rows = unit.rows_of(model_.shards(place.unit, request_.which), place.param);
  add(bucket_, *place.info, param.slice(), rows.to(options));
}

// Every rank has them whole: of slices, the first rank's are enough. They have no gradients.
void WeightExport::add_frozen() {
  const ShardedParam& param = model_.frozen_params()[frozen_++];
  const at::Tensor whole = model_.frozen(param.name(), request_.which);
  const bool mine = request_.form == HEXAD_FORM_FULL || model_.groups().world.rank() == 0;
  if (whole.defined() && mine) add(bucket_, param.info, param.slice(), whole);
}

// The iteration ended early, with a unit on its way, outside of any stream: training must find none of them so.
void WeightExport::break_off() {
  const at::Device device = model_.options().compute_device;
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  std::vector<ShardedUnit>& units = model_.units();
  for (size_t unit = resharded_; unit < std::min(unsharded_ + 1, units.size()); ++unit) {
    units[unit].abandon();
    units[unit].reshard();
  }
}

void WeightExport::end() {
  bucket_ = {};
  if (unshards() && place_ > 0 && resharded_ < model_.units().size()) break_off();
  resharded_ = unsharded_ = model_.units().size();
  place_ = model_.places().size(), frozen_ = model_.frozen_params().size();
}

}  // namespace hexad::dtensor
