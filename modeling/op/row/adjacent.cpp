#include "modeling/op/row/adjacent.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace hexad::modeling {
namespace {

// A view that autograd knows nothing of.
at::Tensor view_of(const at::Tensor& x, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  const at::NoGradGuard no_grad;
  at::Tensor view = at::empty({0}, x.options());
  view.set_(x.storage(), offset, sizes, strides);
  return view;
}

// Elements of a row behind each other?
bool rows_are_dense(const at::Tensor& x) {
  int64_t expected = 1;
  for (int64_t d = x.dim() - 1; d >= 1; --d) {
    if (x.size(d) != 1 && x.stride(d) != expected) return false;
    expected *= x.size(d);
  }
  return true;
}

int64_t row_width(const at::Tensor& x) { return x.dim() == 1 ? 1 : x.numel() / std::max<int64_t>(1, x.size(0)); }

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() && a.scalar_type() == b.scalar_type();
}

at::Tensor rows_together(const std::vector<at::Tensor>& parts) {
  const at::Tensor& first = parts.front();
  int64_t rows = 0, offset = first.storage_offset();
  for (const at::Tensor& part : parts) {
    if (!same_memory(part, first) || !part.is_contiguous() || part.storage_offset() != offset ||
        part.sizes().slice(1) != first.sizes().slice(1))
      return {};
    rows += part.size(0), offset += part.numel();
  }
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes[0] = rows;
  return view_of(first, first.storage_offset(), sizes, first.strides());
}

at::Tensor columns_together(const std::vector<at::Tensor>& parts) {
  const at::Tensor& first = parts.front();
  int64_t columns = 0;
  for (const at::Tensor& part : parts) {
    if (!same_memory(part, first) || part.dim() < 2 || part.size(0) != first.size(0) ||
        part.stride(0) != first.stride(0) || !rows_are_dense(part) ||
        part.storage_offset() != first.storage_offset() + columns)
      return {};
    columns += row_width(part);
  }
  if (columns > first.stride(0)) return {};
  return view_of(first, first.storage_offset(), {first.size(0), columns}, {first.stride(0), 1});
}

}  // namespace

at::Tensor adjacent(const std::vector<at::Tensor>& parts, int64_t dim) {
  for (const at::Tensor& part : parts)
    if (!part.defined() || part.numel() == 0) return {};
  return dim == 0 ? rows_together(parts) : columns_together(parts);
}

std::vector<at::Tensor> side_by_side(const at::Tensor& x, const std::vector<int64_t>& widths) {
  std::vector<at::Tensor> parts;
  int64_t column = 0;
  for (const int64_t width : widths) {
    parts.push_back(view_of(x, x.storage_offset() + column, {x.size(0), width}, {x.stride(0), 1}));
    column += width;
  }
  return parts;
}

at::Tensor at_one_distance(const std::vector<at::Tensor>& parts) {
  const at::Tensor& first = parts.front();
  if (!first.is_contiguous()) return {};
  const int64_t begin = first.storage_offset();
  const int64_t distance = parts.size() > 1 ? parts[1].storage_offset() - begin : first.numel();
  if (distance < first.numel()) return {};
  for (size_t i = 1; i < parts.size(); ++i)
    if (!same_memory(parts[i], first) || !parts[i].is_contiguous() || parts[i].sizes() != first.sizes() ||
        parts[i].storage_offset() != begin + distance * static_cast<int64_t>(i))
      return {};
  std::vector<int64_t> sizes = first.sizes().vec(), strides = first.strides().vec();
  sizes.insert(sizes.begin(), static_cast<int64_t>(parts.size()));
  strides.insert(strides.begin(), distance);
  return view_of(first, begin, sizes, strides);
}

}  // namespace hexad::modeling
