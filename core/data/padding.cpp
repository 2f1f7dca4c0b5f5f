#include "core/data/padding.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lib/base/error.hpp"

namespace hexad::data {

Tensor pack_rows(const Tensor& padded, std::span<const int64_t> lengths) {
  if (padded.dim() < 2 || padded.size(0) != static_cast<int64_t>(lengths.size())) {
    fail(ErrorKind::data, "cannot pack {} by {} lengths: want [B, S, ...]", describe(padded), lengths.size());
  }
  std::vector<int64_t> shape(padded.shape().begin() + 1, padded.shape().end());
  const int64_t width = shape[0];
  for (int64_t length : lengths) {
    if (length < 0 || length > width) fail(ErrorKind::data, "a sample of length {} in rows of {}", length, width);
  }
  shape[0] = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  Tensor packed(padded.dtype(), std::move(shape));
  const auto* source = static_cast<const std::byte*>(padded.data());
  auto* target = static_cast<std::byte*>(packed.data());
  for (size_t row = 0; row < lengths.size(); ++row) {
    const size_t bytes = static_cast<size_t>(lengths[row]) * packed.row_bytes();
    if (bytes > 0) std::memcpy(target, source + row * padded.row_bytes(), bytes);
    target += bytes;
  }
  return packed;
}

Tensor pad_rows(const Tensor& packed, std::span<const int64_t> cu_seqlens, double pad_value, int64_t min_width,
                int64_t multiple) {
  if (cu_seqlens.empty() || packed.dim() == 0 || packed.size(0) != cu_seqlens.back()) {
    fail(ErrorKind::data, "cannot pad {}: cu_seqlens counts {} tokens", describe(packed),
         cu_seqlens.empty() ? 0 : cu_seqlens.back());
  }
  const int64_t rows = static_cast<int64_t>(cu_seqlens.size()) - 1;
  int64_t width = min_width;
  for (int64_t row = 0; row < rows; ++row) width = std::max(width, cu_seqlens[row + 1] - cu_seqlens[row]);
  width = round_up(width, multiple);
  std::vector<int64_t> shape = packed.shape();
  shape[0] = width;
  shape.insert(shape.begin(), rows);
  Tensor padded = Tensor::full(packed.dtype(), std::move(shape), pad_value);
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const std::byte> source = packed.slice(cu_seqlens[row], cu_seqlens[row + 1]).bytes();
    std::copy(source.begin(), source.end(), static_cast<std::byte*>(padded.data()) + row * padded.row_bytes());
  }
  return padded;
}

Tensor to_padded(const Batch& batch, const std::string& name, double pad_value, int64_t min_width, int64_t multiple) {
  const Column& column = batch.column(name);
  if (column.axis != Axis::token) {
    fail(ErrorKind::data, "batch: column '{}' lies on the {} axis; only token columns are padded", name,
         name_of(column.axis));
  }
  return pad_rows(column.tensor, batch.cu_seqlens(), pad_value, min_width, multiple);
}

}  // namespace hexad::data
