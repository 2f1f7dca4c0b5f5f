// CUDA graphs of passes that only decode, one for each size that has come up.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <tuple>

#include "plugins/native/cuda/decode/decoder.hpp"

namespace hexad::native::cuda {

class DecodeGraphs {
 public:
  DecodeGraphs() = default;
  ~DecodeGraphs() { clear(); }
  DecodeGraphs(const DecodeGraphs&) = delete;
  DecodeGraphs& operator=(const DecodeGraphs&) = delete;

  // The sizes of the graph that serves a pass: rows, items and draws rounded up. Every row is one that decodes.
  static PassSizes padded(const PlanShape& shape, int64_t max_rows, const PassSizes& sizes);

  // Enqueues the pass: its graph, or `run` itself the first time, after which the graph is captured.
  void launch(const PassSizes& sizes, const std::function<void()>& run, cudaStream_t stream);
  void clear();

 private:
  using Key = std::tuple<int64_t, int64_t, bool>;  // rows, items of shared beginnings, whether logits are joined
  std::map<Key, cudaGraphExec_t> graphs_;
};

}  // namespace hexad::native::cuda
