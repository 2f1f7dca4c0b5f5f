// Tensors of golden JSON files as at::Tensor.
#pragma once
#include <map>

#include <ATen/Functions.h>

#include "tests/support/golden.hpp"

namespace hexad::modeling {

inline at::Tensor to_tensor(const golden::Json& json) {
  const golden::Tensor value = golden::tensor(json);
  static const std::map<std::string, at::ScalarType> types = {
      {"f32", at::kFloat}, {"f64", at::kDouble},    {"i64", at::kLong}, {"i32", at::kInt},
      {"bool", at::kBool}, {"bf16", at::kBFloat16}, {"f16", at::kHalf}};
  return at::tensor(value.data, at::kDouble).reshape(value.shape).to(types.at(value.dtype));
}

}  // namespace hexad::modeling
