#include "plugins/dtensor/weight_export.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
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
}

void WeightExport::next(hexad_weight_list& out) {
  const at::NoGradGuard no_grad;
  bucket_ = {};
  const size_t places = model_.places().size(), frozen = model_.frozen_params().size();
  while ((place_ < places || frozen_ < frozen) && (bucket_.empty() || bucket_.bytes() < request_.max_bucket_bytes))
    place_ < places ? add_next() : add_frozen();
  bucket_.list(out);
}

void WeightExport::add_next() {
  const WeightPlace& place = model_.places()[place_++];
  const auto rows = [&](size_t unit, size_t param) {
    return model_.units()[unit].rows_of(model_.shards(unit, request_.which), param);
  };
  if (request_.form == HEXAD_FORM_FULL) {
    const modeling::WeightSlice whole{std::vector<int64_t>(place.info->shape.size(), 0), place.info->shape};
    add(bucket_, *place.info, whole, model_.whole(place, dtype(), rows));
    return;
  }
  if (!model_.holds(place)) return;
  const ShardedParam& param = model_.units()[place.unit].params()[place.param];
  const auto options = at::TensorOptions(model_.options().compute_device).dtype(dtype());
  if (param.rows.size() > 0) add(bucket_, *place.info, param.slice(), rows(place.unit, place.param).to(options));
}

// Every rank has them whole: of slices, the first rank's are enough. They have no gradients.
void WeightExport::add_frozen() {
  const ShardedParam& param = model_.frozen_params()[frozen_++];
  const at::Tensor whole = model_.frozen(param.name(), request_.which);
  const bool mine = request_.form == HEXAD_FORM_FULL || model_.groups().world.rank() == 0;
  if (whole.defined() && mine) add(bucket_, param.info, param.slice(), whole);
}

void WeightExport::end() {
  bucket_ = {};
  place_ = model_.places().size(), frozen_ = model_.frozen_params().size();
}

}  // namespace hexad::dtensor
