// What ranks that share a model keep of it with precision fp8.
#pragma once
#include <ATen/Functions.h>

#include "plugins/native/model/weights.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

namespace native_test {

inline bool is_cut_by_columns(const std::string& name) {
  return name.find("o_proj") != std::string::npos || name.find("down_proj") != std::string::npos;
}

inline hexad::native::Fp8Rows cast_in_fp8(const at::Tensor& weight) {
  const at::Tensor x = weight.to(at::kBFloat16).contiguous();
  const hexad::native::Fp8Rows rows = hexad::native::empty_fp8_rows(x.size(0), x.size(1), at::kCPU);
  hexad::native::to_fp8_rows(x, rows);
  return rows;
}

// Of a generator whose `ranks` hold the weights together: bits of the whole matrices, and a column of scales a part.
inline hexad::native::WeightMap kept_by(int64_t ranks, const Weights& weights) {
  hexad::native::WeightMap kept;
  for (const auto& [name, weight] : weights) {
    kept[name] = weight.to(at::kBFloat16);
    if (!hexad::native::is_fp8_weight(name, weight.sizes())) continue;
    std::vector<at::Tensor> values, scales;
    for (const at::Tensor& part : weight.chunk(is_cut_by_columns(name) ? ranks : 1, 1)) {
      const hexad::native::Fp8Rows rows = cast_in_fp8(part);
      values.push_back(rows.values.view(at::kByte)), scales.push_back(rows.scales);
    }
    kept[name] = at::cat(values, 1);
    kept[hexad::native::scales_name(name)] = at::stack(scales, 1);
  }
  return kept;
}

}  // namespace native_test
