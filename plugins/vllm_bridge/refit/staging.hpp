// Weights laid end to end in a buffer of our own on their GPU, as vLLM's packed transfers want them.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "plugins/server_bridge/refit/cuda_driver.hpp"
#include "plugins/server_bridge/refit/weight_names.hpp"

namespace hexad::vllm {

using namespace bridge;

class Staging {
 public:
  // Memory of cuMemAlloc, as a caching allocator's may be of a kind that no other process can map. It is sized by the
  // first bucket, `bytes` at least, and grows for a weight that is larger.
  explicit Staging(size_t bytes) : wanted_(bytes) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Room for every weight of the bucket. Whether the memory is another than before.
  bool reserve(Slices slices);
  // Copies the first of `slices` on the call's stream, as many as fit (one at least), and waits; their sizes in bytes.
  std::vector<int64_t> fill(const sdk::Call& call, Slices slices);

  CudaDriver::Pointer address() const { return address_; }
  size_t size() const { return size_; }
  int device_id() const { return device_id_; }

 private:
  void free();

  size_t wanted_;  // and what a chunk of several weights may hold at most
  int device_id_ = 0;
  CudaDriver::Pointer address_ = 0;
  size_t size_ = 0;
};

}  // namespace hexad::vllm
