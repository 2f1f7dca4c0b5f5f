// The sequences of a pack as cuDNN's graphs take them: a graph is made for bounds (rows, tokens a row, tokens in all)
// and runs every pack that stays within them, with rows of length zero in place of those it lacks.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

struct RowBounds {
  int64_t rows = 0, length = 0, tokens = 0;
};

// Powers of two that hold the pack of these offsets ([B + 1], 0 ... T), so that the packs of a run share a few graphs.
// A pack is not split by length: an empty row costs nothing that shows (43 sequences of RL lengths in graphs of 43, 64
// and 128 rows: within the noise of 5 %, benchmarks/attention_speed.cpp), and the backward pass's workspace grows with
// `tokens`, not with rows x length (1.75 GiB for 32k tokens, 32 heads of 128 over 8).
RowBounds bucketed_bounds(const std::vector<int64_t>& offsets);

class RaggedRows {
 public:
  // The pack of these offsets, [B + 1] from 0 to T, on `device`; the copies are enqueued on the current stream.
  RaggedRows(const std::vector<int64_t>& offsets, const RowBounds& bounds, at::Device device);

  const RowBounds& bounds() const { return bounds_; }
  // int32 [rows].
  const at::Tensor& lengths() const { return lengths_; }
  // int64 [rows + 1]: where the rows start, in elements, in a tensor whose tokens are `stride` elements apart. Made
  // once a stride, on the current stream, for all layers that run on it. Any thread.
  at::Tensor starts(int64_t stride) const;

 private:
  RowBounds bounds_;
  at::Tensor lengths_, starts_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, at::Tensor> scaled_;
};

}  // namespace hexad::modeling
