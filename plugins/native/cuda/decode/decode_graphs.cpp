#include "plugins/native/cuda/decode/decode_graphs.hpp"

#include <algorithm>
#include <bit>

#include "plugins/native/cuda/check.hpp"

namespace hexad::native::cuda {
namespace {

int64_t bucket(int64_t rows) {
  if (rows <= 8) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  const int64_t step = rows <= 64 ? 8 : rows <= 256 ? 16 : 32;
  return (rows + step - 1) / step * step;
}

}  // namespace

PassSizes DecodeGraphs::padded(const PlanShape& shape, int64_t max_rows, const PassSizes& sizes) {
  PassSizes result = sizes;
  const int64_t rows = std::min(max_rows, bucket(sizes.rows));
  const PlanBounds bounds = plan_bounds(shape, rows, 0, 0);
  result.rows = result.decode_rows = result.logit_rows = result.draws = rows;
  result.own_items = bounds.own_items;
  if (sizes.shared_items > 0) {
    const auto items = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(sizes.shared_items)));
    // Close steps where there are many: an item that does nothing still starts a thread block.
    const int64_t close = std::max<int64_t>(8, items / 8);
    result.shared_items = std::min(bounds.shared_items, (sizes.shared_items + close - 1) / close * close);
  }
  return result;
}

void DecodeGraphs::launch(const PassSizes& sizes, const std::function<void()>& run, cudaStream_t stream) {
  const Key key{sizes.rows, sizes.shared_items, sizes.joins};
  if (const auto found = graphs_.find(key); found != graphs_.end()) {
    check(cudaGraphLaunch(found->second, stream), "launch of a decode graph");
    return;
  }
  run();  // also makes what must exist before a capture: cuBLAS workspaces, kernels in memory
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture of a decode graph");
  cudaGraph_t graph = nullptr;
  try {
    run();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "capture of a decode graph");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "instantiation of a decode graph");
  graphs_[key] = executable;
}

void DecodeGraphs::clear() {
  for (auto& [key, graph] : graphs_) cudaGraphExecDestroy(graph);
  graphs_.clear();
}

}  // namespace hexad::native::cuda
