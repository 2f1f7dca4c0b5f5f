// The small arrays of a pass (ids, positions, plan, draws) on their way to the GPU: written into page-locked memory,
// two passes in turn, and copied to addresses that stay, because CUDA graphs hold them.
#pragma once
#include <ATen/core/Tensor.h>
#include <cuda_runtime_api.h>

#include <array>
#include <vector>

#include "plugins/native/cuda/attention/attention.hpp"
#include "plugins/native/cuda/sample/sample.hpp"

namespace hexad::native::cuda {

struct ArrayLimits {
  int64_t rows, sequences, blocks_per_sequence;  // rows of a pass; of them at most `sequences` decode, each draws once
  PlanShape shape;
};

class PassArrays {
 public:
  PassArrays(const ArrayLimits& limits, at::Device device);
  ~PassArrays();
  PassArrays(const PassArrays&) = delete;
  PassArrays& operator=(const PassArrays&) = delete;

  const ArrayLimits& limits() const { return limits_; }

  // The host's side of the pass that is being prepared. `begin` waits until the copy of the pass before the last, which
  // was made from the same memory, is done.
  struct Host {
    int32_t *ids, *positions, *slots, *logit_rows;
    DrawTask* tasks;
  };
  Host begin();
  struct Counts {
    int64_t rows = 0, decode_rows = 0, logit_rows = 0, draws = 0, own_items = 0, shared_items = 0;
  };
  // Enqueues the copy of all that a pass of `padded` counts reads. What it has above `counts` and `plan`, because a
  // CUDA graph has one size, is filled with entries that do nothing.
  void upload(const AttentionPlan& plan, const Counts& counts, const Counts& padded, cudaStream_t stream);

  // The device's side: fixed addresses.
  const int32_t* ids() const { return at<int32_t>(device_, ids_); }
  const int32_t* positions() const { return ids() + limits_.rows; }
  const int32_t* slots() const { return ids() + 2 * limits_.rows; }
  const int32_t* logit_rows() const { return at<int32_t>(device_, logit_rows_); }
  const DrawTask* tasks() const { return at<DrawTask>(device_, tasks_); }
  const MergeRow* merge() const { return at<MergeRow>(device_, merge_); }
  // With as many requests and items as the launch shall have.
  LevelArrays own(int64_t requests, int64_t items) const { return level(own_, requests, items); }
  LevelArrays shared(int64_t requests, int64_t items) const { return level(shared_, requests, items); }
  LevelArrays prompt(int64_t requests, int64_t items) const { return level(prompt_, requests, items); }

 private:
  struct LevelOffsets {
    size_t q_indptr, o_indptr, block_indptr, last_block_size, request, tile, chunk, valid, chunk_size, blocks;
    int64_t requests, items, most_blocks;
  };
  template <typename T>
  static T* at(char* base, size_t offset) {
    return reinterpret_cast<T*>(base + offset);
  }
  size_t place(size_t bytes);
  LevelOffsets place_level(int64_t requests, int64_t items);
  LevelArrays level(const LevelOffsets& offsets, int64_t requests, int64_t items) const;
  void write_level(const PlanLevel& plan, const LevelOffsets& offsets, int64_t requests, int64_t items);
  void copy(size_t offset, size_t bytes, cudaStream_t stream);

  ArrayLimits limits_;
  size_t size_ = 0, small_ = 0;
  size_t ids_, logit_rows_, tasks_, merge_;
  LevelOffsets own_, shared_, prompt_;
  at::Tensor memory_;
  char* device_ = nullptr;
  std::array<char*, 2> host_{};
  std::array<cudaEvent_t, 2> copied_{};
  size_t turn_ = 0;
};

}  // namespace hexad::native::cuda
