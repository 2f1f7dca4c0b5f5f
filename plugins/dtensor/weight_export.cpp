#include "plugins/dtensor/weight_export.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/services.hpp>

namespace hexad::dtensor {

at::ScalarType WeightExport::dtype() const {
  return request_.which == HEXAD_WEIGHTS_GRADIENTS ? at::kFloat : model_.options().compute_dtype;
}

// `data` undefined: a layout.
void WeightExport::add(modeling::WeightBucket& bucket, const ShardedParam& param, const modeling::WeightSlice& slice,
                       const at::Tensor& data) const {
  bucket.add(param.name(), param.info.shape, slice.offsets, slice.shape, data,
             param.info.trainable ? model_.options().compute_dtype : at::kFloat);
}

void WeightExport::layout(hexad_weight_list& out) {
  if (layout_.empty()) {
    model_.each_param([&](size_t u, size_t i) {
      const ShardedParam& param = model_.units()[u].params()[i];
      if (param.rows.size() > 0) add(layout_, param, param.slice(), {});
    });
    if (model_.groups().world.rank() == 0)
      for (const ShardedParam& param : model_.frozen_params()) add(layout_, param, param.slice(), {});
  }
  layout_.list(out);
}

void WeightExport::begin(const hexad_weights_request& request) {
  if (request.form != HEXAD_FORM_FULL && request.form != HEXAD_FORM_SHARD)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weights_begin: unknown form %d", request.form);
  model_.shards(0, request.which);  // refuses weights that are not there
  request_ = request;
  unit_ = param_ = frozen_ = 0;
}

void WeightExport::next(hexad_weight_list& out) {
  const at::NoGradGuard no_grad;
  bucket_ = {};
  const size_t units = model_.units().size(), frozen = model_.frozen_params().size();
  while ((unit_ < units || frozen_ < frozen) && (bucket_.empty() || bucket_.bytes() < request_.max_bucket_bytes))
    unit_ < units ? add_next() : add_frozen();
  bucket_.list(out);
}

void WeightExport::add_next() {
  const ShardedUnit& unit = model_.units()[unit_];
  const ShardedParam& param = unit.params()[param_];
  const at::Tensor rows = unit.rows_of(model_.shards(unit_, request_.which), param_)
                              .to(at::TensorOptions(model_.options().compute_device).dtype(dtype()));
  if (request_.form == HEXAD_FORM_FULL) {
    const modeling::WeightSlice whole{std::vector<int64_t>(param.info.shape.size(), 0), param.info.shape};
    add(bucket_, param, whole, model_.whole(param, rows));
  } else if (param.rows.size() > 0) {
    add(bucket_, param, param.slice(), rows);
  }
  if (++param_ == unit.params().size()) ++unit_, param_ = 0;
}

// Every rank has them whole: of slices, the first rank's are enough. They have no gradients.
void WeightExport::add_frozen() {
  const ShardedParam& param = model_.frozen_params()[frozen_++];
  const at::Tensor whole = model_.frozen(param.name(), request_.which);
  const bool mine = request_.form == HEXAD_FORM_FULL || model_.groups().world.rank() == 0;
  if (whole.defined() && mine) add(bucket_, param, param.slice(), whole);
}

void WeightExport::end() {
  bucket_ = {};
  unit_ = model_.units().size(), frozen_ = model_.frozen_params().size();
}

}  // namespace hexad::dtensor
