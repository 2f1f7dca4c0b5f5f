#include "modeling/op/row/ragged_rows.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>

#include "modeling/op/host_copy.hpp"

namespace hexad::modeling {
namespace {

// Below these the graphs are as good, and one of them serves all.
constexpr int64_t kRows = 8, kLength = 128, kTokens = 4096;

int64_t bucket(int64_t value, int64_t least) { return int64_t(std::bit_ceil(uint64_t(std::max(value, least)))); }

}  // namespace

RowBounds bucketed_bounds(const std::vector<int64_t>& offsets) {
  int64_t length = 0;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) length = std::max(length, offsets[i + 1] - offsets[i]);
  return {bucket(int64_t(offsets.size()) - 1, kRows), bucket(length, kLength), bucket(offsets.back(), kTokens)};
}

RaggedRows::RaggedRows(const std::vector<int64_t>& offsets, const RowBounds& bounds, at::Device device)
    : bounds_(bounds) {
  std::vector<int64_t> starts = offsets;
  starts.resize(size_t(bounds.rows) + 1, offsets.back());
  const at::Tensor host = at::tensor(starts);
  starts_ = on_device(host, device);
  lengths_ = on_device(host.diff().to(at::kInt), device);
}

at::Tensor RaggedRows::starts(int64_t stride) const {
  const std::lock_guard lock(mutex_);
  at::Tensor& scaled = scaled_[stride];
  if (!scaled.defined()) scaled = starts_ * stride;
  return scaled;
}

}  // namespace hexad::modeling
