#include "modeling/op/fp8/casts.hpp"

namespace hexad::modeling {
namespace {

std::vector<const void*> key_of(const std::vector<at::Tensor>& weights) {
  std::vector<const void*> key;
  for (const at::Tensor& weight : weights) key.push_back(weight.unsafeGetTensorImpl());
  return key;
}

int64_t bytes_of(const at::Tensor& x) { return x.defined() ? static_cast<int64_t>(x.nbytes()) : 0; }

}  // namespace

void Fp8Casts::clear() {
  most_.reset();
  bytes_ = 0;
  entries_.clear();
}

Fp8Tensor Fp8Casts::get(const std::vector<at::Tensor>& weights, Fp8Copies layout, const Make& make) {
  if (!most_) return make({});
  Entry& entry = entries_[key_of(weights)];
  const bool by_rows = layout == Fp8Copies::rows;
  at::Tensor &values = by_rows ? entry.cast.rows : entry.cast.columns,
             &inverse = by_rows ? entry.cast.row_inverse : entry.cast.column_inverse;
  if (values.defined()) return entry.cast;
  const Fp8Tensor made = make(entry.cast.range);
  entry.weights = weights;
  entry.cast.range = made.range;
  entry.cast.scaling = made.scaling;
  const at::Tensor &new_values = by_rows ? made.rows : made.columns,
                   &new_inverse = by_rows ? made.row_inverse : made.column_inverse;
  const int64_t bytes = bytes_of(new_values) + bytes_of(new_inverse);
  if (bytes > *most_ - bytes_) return made;
  bytes_ += bytes;
  values = new_values, inverse = new_inverse;
  return made;
}

}  // namespace hexad::modeling
