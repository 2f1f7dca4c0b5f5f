#include "modeling/refit/weight_names.hpp"

#include <algorithm>
#include <functional>

namespace hexad::refit {
namespace {

bool contiguous(const DLTensor& tensor) {
  int64_t stride = 1;
  for (int32_t d = tensor.ndim; tensor.strides && d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != stride) return false;
    stride *= tensor.shape[d];
  }
  return true;
}

}  // namespace

ElementType element_type(DLDataType type, const char* weight) {
  const auto is = [&](int code, int bits) { return type.code == code && type.bits == bits && type.lanes == 1; };
  if (is(kDLFloat, 32)) return {"float32", "F32"};
  if (is(kDLFloat, 16)) return {"float16", "F16"};
  if (is(kDLBfloat, 16)) return {"bfloat16", "BF16"};
  if (is(kDLFloat, 64)) return {"float64", "F64"};
  if (is(kDLFloat8_e4m3fn, 8)) return {"float8_e4m3fn", "F8_E4M3"};
  if (is(kDLUInt, 8)) return {"uint8", "U8"};  // exponents of MX
  sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: %s has a type (code %d, %d bits) that no server takes", weight,
            type.code, type.bits);
}

void check_whole(const hexad_weight_slice& slice) {
  bool whole = slice.tensor != nullptr;
  for (int32_t d = 0; whole && d < slice.ndim; ++d)
    whole = slice.offsets[d] == 0 && slice.shape[d] == slice.global_shape[d];
  if (!whole) sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: got a part of %s, wanted the whole weight", slice.name);
}

std::vector<const hexad_weight_slice*> in_order(const hexad_weight_list& bucket) {
  std::vector<const hexad_weight_slice*> slices;
  for (int64_t i = 0; i < bucket.count; ++i) {
    check_whole(bucket.slices[i]);
    if (!contiguous(*bucket.slices[i].tensor)) {
      sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: got %s with gaps between its elements, wanted it contiguous",
                bucket.slices[i].name);
    }
    slices.push_back(&bucket.slices[i]);
  }
  std::ranges::stable_sort(slices, std::greater(), [](const auto* slice) { return slice->tensor->dtype.bits; });
  return slices;
}

nlohmann::ordered_json describe_weights(Slices slices) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array(), types = names, shapes = names;
  for (const hexad_weight_slice* slice : slices) {
    names.push_back(slice->name);
    types.push_back(element_type(slice->tensor->dtype, slice->name).torch);
    shapes.push_back(std::vector<int64_t>(slice->shape, slice->shape + slice->ndim));
  }
  return {{"names", names}, {"dtype_names", types}, {"shapes", shapes}};
}

}  // namespace hexad::refit
