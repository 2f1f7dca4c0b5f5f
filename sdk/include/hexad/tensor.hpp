// Typed views of DLPack tensors.
#pragma once
#include <hexad/services.hpp>

#include <span>

namespace hexad::sdk {

inline int64_t element_count(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= tensor.shape[d];
  return count;
}

template <typename T>
constexpr DLDataType dtype_of() {
  using Value = std::remove_const_t<T>;
  static_assert(std::is_arithmetic_v<Value>, "a tensor's elements are numbers");
  constexpr auto bits = static_cast<uint8_t>(8 * sizeof(Value));
  if constexpr (std::is_floating_point_v<Value>) return {kDLFloat, bits, 1};
  if constexpr (std::is_same_v<Value, bool>) return {kDLBool, bits, 1};
  return {static_cast<uint8_t>(std::is_signed_v<Value> ? kDLInt : kDLUInt), bits, 1};
}

// All elements of a contiguous host tensor, row-major; empty for a null pointer. Throws if the dtype is another.
template <typename T>
std::span<T> view(const DLTensor* tensor) {
  if (!tensor) return {};
  constexpr DLDataType wanted = dtype_of<T>();
  const DLDataType got = tensor->dtype;
  if (got.code != wanted.code || got.bits != wanted.bits || got.lanes != 1) {
    fail(HEXAD_INVALID_ARGUMENT, "a tensor has dtype (code %d, %d bits), wanted (code %d, %d bits)", got.code, got.bits,
         wanted.code, wanted.bits);
  }
  return {HEXAD_DATA(T, tensor), static_cast<size_t>(element_count(*tensor))};
}

}  // namespace hexad::sdk
