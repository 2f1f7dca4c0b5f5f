// Rows in tiles of one size, for operators whose bits of a row go by how many rows there are.
#pragma once
#include <functional>
#include <vector>

#include <ATen/Functions.h>

namespace hexad::modeling {

// f(x), x [T, ...] -> [T, ...]; with row_tile n > 0 of tiles of exactly n rows, the last one filled up with zeros.
inline at::Tensor by_row_tiles(const at::Tensor& x, int64_t row_tile,
                               const std::function<at::Tensor(const at::Tensor&)>& f) {
  const int64_t rows = x.size(0);
  if (row_tile == 0 || rows == 0) return f(x);
  std::vector<at::Tensor> tiles;
  for (int64_t begin = 0; begin < rows; begin += row_tile) {
    at::Tensor tile = x.slice(0, begin, std::min(rows, begin + row_tile));
    const int64_t missing = row_tile - tile.size(0);
    if (missing > 0) tile = at::constant_pad_nd(tile, {0, 0, 0, missing});
    const at::Tensor result = f(tile);
    tiles.push_back(missing > 0 ? result.slice(0, 0, row_tile - missing) : result);
  }
  return at::cat(tiles, 0);
}

}  // namespace hexad::modeling
