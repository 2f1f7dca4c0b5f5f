// Where the gradients of matrices are summed, shown to the products that can add to them in place.
#pragma once
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// Matrices carry their sums in grad() while this lives: op/linear.hpp adds to them.
class OfferedSums {
 public:
  OfferedSums() = default;
  ~OfferedSums() {
    for (at::Tensor& leaf : leaves_) leaf.mutable_grad() = at::Tensor();
  }
  OfferedSums(const OfferedSums&) = delete;

  // leaf: a matrix; sum: fp32, see grad_sum_of().
  void offer(at::Tensor leaf, at::Tensor sum) {
    leaves_.push_back(std::move(leaf));
    leaves_.back().mutable_grad() = std::move(sum);
  }

 private:
  std::vector<at::Tensor> leaves_;
};

}  // namespace hexad::modeling
