// Weights as a backend holds them.
#pragma once
#include <vector>

#include <torch/types.h>

namespace hexad::modeling {

// Leaves over the rows of `flat`, side by side.
inline std::vector<at::Tensor> leaves_of(const at::Tensor& flat, const std::vector<int64_t>& rows) {
  std::vector<at::Tensor> leaves;
  int64_t begin = 0;
  for (const int64_t count : rows) {
    at::Tensor leaf = at::empty({0}, flat.options());
    leaf.set_(flat.storage(), begin * flat.size(1), {count, flat.size(1)});
    leaves.push_back(leaf.requires_grad_(true));
    begin += count;
  }
  return leaves;
}

}  // namespace hexad::modeling
