#include "modeling/backend/weight/bucket.hpp"

#include "modeling/backend/tensor_view.hpp"

namespace hexad::modeling {

void WeightBucket::add(const std::string& name, const std::vector<int64_t>& global_shape, std::vector<int64_t> offsets,
                       std::vector<int64_t> shape, const at::Tensor& data, at::ScalarType dtype) {
  hexad_weight_slice slice{};
  slice.name = name.c_str();
  slice.global_shape = global_shape.data();
  slice.offsets = dims_.emplace_back(std::move(offsets)).data();
  slice.shape = dims_.emplace_back(std::move(shape)).data();
  slice.ndim = static_cast<int32_t>(global_shape.size());
  slice.dtype = dl_dtype(data.defined() ? data.scalar_type() : dtype);
  if (data.defined()) slice.tensor = &views_.emplace_back(to_dl(tensors_.emplace_back(data)));
  slices_.push_back(slice);
}

int64_t WeightBucket::bytes() const {
  int64_t total = 0;
  for (const at::Tensor& tensor : tensors_) total += static_cast<int64_t>(tensor.nbytes());
  return total;
}

void WeightBucket::list(hexad_weight_list& out) const {
  out.slices = slices_.data();
  out.count = static_cast<int64_t>(slices_.size());
}

}  // namespace hexad::modeling
