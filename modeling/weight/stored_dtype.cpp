#include "modeling/weight/stored_dtype.hpp"

#include <array>
#include <utility>

namespace hexad::modeling {
namespace {

using tensorfile::DType;

constexpr std::array<std::pair<DType, at::ScalarType>, 10> kStoredTypes = {{
    {DType::f32, at::kFloat},
    {DType::bf16, at::kBFloat16},
    {DType::f16, at::kHalf},
    {DType::f64, at::kDouble},
    {DType::i64, at::kLong},
    {DType::i32, at::kInt},
    {DType::i16, at::kShort},
    {DType::i8, at::kChar},
    {DType::u8, at::kByte},
    {DType::boolean, at::kBool},
}};

}  // namespace

std::optional<at::ScalarType> scalar_type(DType dtype) {
  for (const auto& [stored, type] : kStoredTypes) {
    if (stored == dtype) return type;
  }
  return std::nullopt;
}

DType stored_dtype(at::ScalarType dtype) {
  for (const auto& [stored, type] : kStoredTypes) {
    if (type == dtype) return stored;
  }
  fail("dtype {} cannot be stored as safetensors", c10::toString(dtype));
}

}  // namespace hexad::modeling
