#include "core/cluster/tensor_view.hpp"

namespace hexad::cluster {
namespace {

DLDataType dl_type(data::DType dtype) {
  switch (dtype) {
    case data::DType::f32: return {kDLFloat, 32, 1};
    case data::DType::f64: return {kDLFloat, 64, 1};
    case data::DType::i16: return {kDLInt, 16, 1};
    case data::DType::i32: return {kDLInt, 32, 1};
    case data::DType::i64: return {kDLInt, 64, 1};
    case data::DType::u8: return {kDLUInt, 8, 1};
    case data::DType::boolean: return {kDLBool, 8, 1};
  }
  return {kDLFloat, 32, 1};
}

int32_t abi_axis(data::Axis axis) {
  switch (axis) {
    case data::Axis::token: return HEXAD_AXIS_TOKEN;
    case data::Axis::sample: return HEXAD_AXIS_SAMPLE;
    case data::Axis::group: return HEXAD_AXIS_GROUP;
    case data::Axis::none: return HEXAD_AXIS_NONE;
  }
  return HEXAD_AXIS_NONE;
}

}  // namespace

std::optional<data::DType> dtype_of(DLDataType type) {
  using data::DType;
  for (const DType dtype : {DType::f32, DType::f64, DType::i16, DType::i32, DType::i64, DType::u8}) {
    const DLDataType known = dl_type(dtype);
    if (type.code == known.code && type.bits == known.bits && type.lanes == known.lanes) return dtype;
  }
  return std::nullopt;
}

TensorView::TensorView(const data::Tensor& tensor)
    : tensor_(tensor), shape_(tensor.shape()), strides_(tensor.shape().size()) {
  int64_t stride = 1;
  for (size_t i = shape_.size(); i-- > 0;) strides_[i] = stride, stride *= shape_[i];
  view_ = {tensor_.data(),
           {kDLCPU, 0},
           static_cast<int32_t>(shape_.size()),
           dl_type(tensor.dtype()),
           shape_.data(),
           strides_.data(),
           0};
}

BatchView::BatchView(data::Batch batch, const std::vector<std::string>& names, int64_t padded_length, bool dummy)
    : batch_(std::move(batch)), names_(names) {
  for (const std::string& name : names_) {
    hexad_named_tensor entry{name.c_str(), nullptr, nullptr, HEXAD_AXIS_NONE, 0};
    if (batch_.has(name)) {
      const data::Column& column = batch_.column(name);
      entry.tensor = views_.emplace_back(column.tensor).get();
      entry.axis = abi_axis(column.axis);
    }
    tensors_.push_back(entry);
  }
  view_ = {HEXAD_STRUCT_SIZE(hexad_batch, is_dummy),
           0,
           batch_.size(),
           batch_.tokens(),
           batch_.cu_seqlens().data(),
           tensors_.data(),
           static_cast<int64_t>(tensors_.size()),
           padded_length,
           dummy};
}

ColumnViews::ColumnViews(const data::Batch& batch) {
  for (const auto& [name, column] : batch.columns()) {
    DLTensor* view = views_.emplace_back(column.tensor).get();
    tensors_.push_back({names_.emplace_back(name).c_str(), view, nullptr, abi_axis(column.axis), 0});
  }
}

}  // namespace hexad::cluster
