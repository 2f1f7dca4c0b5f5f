#include "plugins/vllm_bridge/refit/weight_names.hpp"

#include <algorithm>
#include <functional>

namespace hexad::vllm {
namespace {

bool contiguous(const DLTensor& tensor) {
  int64_t stride = 1;
  for (int32_t d = tensor.ndim; tensor.strides && d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != stride) return false;
    stride *= tensor.shape[d];
  }
  return true;
}

void check(const hexad_weight_slice& slice) {
  bool whole = slice.tensor != nullptr;
  for (int32_t d = 0; whole && d < slice.ndim; ++d)
    whole = slice.offsets[d] == 0 && slice.shape[d] == slice.global_shape[d];
  if (!whole) sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: got a part of %s, wanted the whole weight", slice.name);
  if (!contiguous(*slice.tensor))
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: got %s with gaps between its elements, wanted it contiguous",
              slice.name);
}

}  // namespace

const char* torch_type(DLDataType type, const char* weight) {
  const auto is = [&](int code, int bits) { return type.code == code && type.bits == bits && type.lanes == 1; };
  if (is(kDLFloat, 32)) return "float32";
  if (is(kDLFloat, 16)) return "float16";
  if (is(kDLBfloat, 16)) return "bfloat16";
  if (is(kDLFloat, 64)) return "float64";
  if (is(kDLFloat8_e4m3fn, 8)) return "float8_e4m3fn";
  sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: %s has a type (code %d, %d bits) that no server takes", weight,
            type.code, type.bits);
}

std::vector<const hexad_weight_slice*> in_order(const hexad_weight_list& bucket) {
  std::vector<const hexad_weight_slice*> slices;
  for (int64_t i = 0; i < bucket.count; ++i) {
    check(bucket.slices[i]);
    slices.push_back(&bucket.slices[i]);
  }
  std::ranges::stable_sort(slices, std::greater(), [](const auto* slice) { return slice->tensor->dtype.bits; });
  return slices;
}

nlohmann::ordered_json describe_weights(Slices slices) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array(), types = names, shapes = names;
  for (const hexad_weight_slice* slice : slices) {
    names.push_back(slice->name);
    types.push_back(torch_type(slice->tensor->dtype, slice->name));
    shapes.push_back(std::vector<int64_t>(slice->shape, slice->shape + slice->ndim));
  }
  return {{"names", names}, {"dtype_names", types}, {"shapes", shapes}};
}

}  // namespace hexad::vllm
