// The weights of an executor that reads them as they are: one piece of memory of their own, on a GPU from the driver
// and not from LibTorch's caching allocator, in which each has its place. New values come to the same addresses, so
// CUDA graphs outlive them; and what sleep gives back is one piece, which leaves no holes.
#pragma once
#include "modeling/family/model_config.hpp"
#include "plugins/native/model/weights.hpp"

namespace hexad::native {

class WeightStore {
 public:
  // Allocates nothing yet. fp8: matrices of layers are kept in FP8 (fp8_rows.hpp), their scales under scales_name().
  WeightStore(const modeling::ModelConfig& config, at::ScalarType dtype, at::Device device, bool fp8 = false,
              const Shard& shard = {});

  // Every weight at its place, in the order of the table, scales after them in the same order, and on multiples of 128
  // bytes: projections of one input whose sizes are such multiples lie side by side (modeling::adjacent). The memory
  // comes with the first call. Throws c10::OutOfMemoryError.
  const WeightMap& places();
  // Copies the weights of a complete set that lie elsewhere to their places, on LibTorch's current stream. What is kept
  // in FP8 may come so, with its scales, or in another type, and is cast.
  const WeightMap& settle(const WeightMap& weights);
  void release();

 private:
  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
    at::ScalarType dtype;
    std::string scales_of = {};  // whose scales these are
  };
  std::vector<Entry> table_;
  at::Device device_;
  WeightMap places_;  // views of one tensor, which lives as long as any of them
};

}  // namespace hexad::native
