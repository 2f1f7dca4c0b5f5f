#include "plugins/dtensor/weight_export.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hexad/services.hpp>

#include "plugins/dtensor/tensor_view.hpp"

namespace hexad::dtensor {

at::ScalarType WeightExport::dtype() const {
  return request_.which == HEXAD_WEIGHTS_GRADIENTS ? at::kFloat : model_.options().compute_dtype;
}

// `data` undefined: a layout.
void WeightExport::add(Bucket& bucket, const ShardedParam& param, const modeling::Range& rows,
                       const at::Tensor& data) const {
  std::vector<int64_t> offsets(param.shape.size(), 0), shape = param.shape;
  offsets[0] = rows.begin;
  shape[0] = rows.size();
  hexad_weight_slice slice{};
  slice.name = param.name.c_str();
  slice.global_shape = param.shape.data();
  slice.offsets = bucket.dims.emplace_back(std::move(offsets)).data();
  slice.shape = bucket.dims.emplace_back(std::move(shape)).data();
  slice.ndim = static_cast<int32_t>(param.shape.size());
  const bool frozen = model_.frozen(param.name, HEXAD_WEIGHTS_CURRENT).defined();
  slice.dtype = dl_dtype(data.defined() ? data.scalar_type() : frozen ? at::kFloat : model_.options().compute_dtype);
  if (data.defined()) slice.tensor = &bucket.views.emplace_back(to_dl(bucket.tensors.emplace_back(data)));
  bucket.slices.push_back(slice);
}

void WeightExport::layout(hexad_weight_list& out) {
  if (layout_.slices.empty()) {
    model_.each_param([&](size_t u, size_t i) {
      const ShardedParam& param = model_.units()[u].params()[i];
      if (param.rows.size() > 0) add(layout_, param, param.rows, {});
    });
    if (model_.group().rank() == 0)
      for (const ShardedParam& param : model_.frozen_params()) add(layout_, param, param.rows, {});
  }
  out.slices = layout_.slices.data();
  out.count = static_cast<int64_t>(layout_.slices.size());
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
  int64_t bytes = 0;
  const size_t units = model_.units().size(), frozen = model_.frozen_params().size();
  while ((unit_ < units || frozen_ < frozen) && (bucket_.slices.empty() || bytes < request_.max_bucket_bytes)) {
    unit_ < units ? add_next(bucket_) : add_frozen(bucket_);
    bytes = 0;
    for (const at::Tensor& tensor : bucket_.tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  }
  out.slices = bucket_.slices.data();
  out.count = static_cast<int64_t>(bucket_.slices.size());
}

void WeightExport::add_next(Bucket& bucket) {
  const ShardedUnit& unit = model_.units()[unit_];
  const ShardedParam& param = unit.params()[param_];
  const at::Tensor rows = unit.rows_of(model_.shards(unit_, request_.which), param_)
                              .to(at::TensorOptions(model_.options().compute_device).dtype(dtype()));
  if (request_.form == HEXAD_FORM_FULL) {
    add(bucket, param, {0, param.shape[0]},
        modeling::redistribute(rows, param.shape, modeling::Placement::shard(0), modeling::Placement::replicate(),
                               model_.group()));
  } else if (param.rows.size() > 0) {
    add(bucket, param, param.rows, rows);
  }
  if (++param_ == unit.params().size()) ++unit_, param_ = 0;
}

// Every rank has them whole: of slices, the first rank's are enough. They have no gradients.
void WeightExport::add_frozen(Bucket& bucket) {
  const ShardedParam& param = model_.frozen_params()[frozen_++];
  const at::Tensor whole = model_.frozen(param.name, request_.which);
  const bool mine = request_.form == HEXAD_FORM_FULL || model_.group().rank() == 0;
  if (whole.defined() && mine) add(bucket, param, param.rows, whole);
}

void WeightExport::end() {
  bucket_ = {};
  unit_ = model_.units().size(), frozen_ = model_.frozen_params().size();
}

}  // namespace hexad::dtensor
