// Slices of weights on their way over the ABI, with all that they point to.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <hexad/abi.h>

namespace hexad::modeling {

class WeightBucket {
 public:
  // Elements [offsets, offsets + shape) of the weight `name` of `global_shape`; both are borrowed, the rest is kept.
  // `data`: of that shape, or undefined for a layout, whose dtype is `dtype`.
  void add(const std::string& name, const std::vector<int64_t>& global_shape, std::vector<int64_t> offsets,
           std::vector<int64_t> shape, const at::Tensor& data, at::ScalarType dtype);

  bool empty() const { return slices_.empty(); }
  int64_t bytes() const;  // of the data
  // `out` refers to this bucket until it is changed or destroyed.
  void list(hexad_weight_list& out) const;

 private:
  std::vector<hexad_weight_slice> slices_;
  std::deque<at::Tensor> tensors_;
  std::deque<DLTensor> views_;
  std::deque<std::vector<int64_t>> dims_;
};

}  // namespace hexad::modeling
