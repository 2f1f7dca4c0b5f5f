// The weights of an executor that reads them as they are: one piece of memory of their own, on a GPU from the driver
// and not from LibTorch's caching allocator, in which each has its place. New values come to the same addresses, so
// CUDA graphs outlive them; and what sleep gives back is one piece, which leaves no holes.
#pragma once
#include "modeling/family/weight_table.hpp"
#include "plugins/native/model/weights.hpp"

namespace hexad::native {

class WeightStore {
 public:
  // Allocates nothing yet.
  WeightStore(const modeling::ModelConfig& config, at::ScalarType dtype, at::Device device);

  // Every weight at its place, in the order of the table and on multiples of 128 bytes: projections of one input whose
  // sizes are such multiples lie side by side (modeling::adjacent). The memory comes with the first call. Throws
  // c10::OutOfMemoryError.
  const WeightMap& places();
  // Copies the weights of a complete set that lie elsewhere to their places, on LibTorch's current stream.
  const WeightMap& settle(const WeightMap& weights);
  void release();

 private:
  std::vector<modeling::WeightInfo> table_;
  at::ScalarType dtype_;
  at::Device device_;
  WeightMap places_;  // views of one tensor, which lives as long as any of them
};

}  // namespace hexad::native
