#include "modeling/op/linear.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {

at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t row_tile) {
  const std::optional<at::Tensor> optional_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  if (row_tile <= 0) return at::linear(x, weight, optional_bias);
  const int64_t rows = x.size(0);
  std::vector<at::Tensor> tiles;
  for (int64_t begin = 0; begin < rows; begin += row_tile) {
    at::Tensor tile = x.slice(0, begin, std::min(rows, begin + row_tile));
    const int64_t missing = row_tile - tile.size(0);
    if (missing > 0) tile = at::constant_pad_nd(tile, {0, 0, 0, missing});
    const at::Tensor product = at::linear(tile, weight, optional_bias);
    tiles.push_back(missing > 0 ? product.slice(0, 0, row_tile - missing) : product);
  }
  return tiles.empty() ? at::linear(x, weight, optional_bias) : at::cat(tiles, 0);
}

}  // namespace hexad::modeling
