// A generator with little room, and requests that fill it: prompts are shared, cut into chunks, and preempted.
#pragma once
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

namespace native_test {

// kv_cache_gb of `blocks` blocks.
inline double pool_of(const TinyModel& model, int64_t block_size, int64_t blocks, at::ScalarType dtype = at::kFloat) {
  const int64_t bytes = hexad::native::KvCache::bytes_per_block(model.config, block_size, dtype);
  return (double(blocks) + 0.5) * double(bytes) / (1024.0 * 1024.0 * 1024.0);
}

// policy.generation: small blocks, odd chunks, and a cache that holds a few sequences only.
inline Json tight(const TinyModel& model, const std::string& precision = "float32") {
  const int64_t block_size = model.config.family == "qwen2" ? 8 : 3;
  const at::ScalarType dtype = precision == "float32" ? at::kFloat : at::kHalf;  // or another of two bytes
  return {{"model_name", model.path()},
          {"precision", precision},
          {"native_cfg",
           {{"kv_block_size", block_size},
            {"kv_cache_gb", pool_of(model, block_size, 180 / block_size, dtype)},
            {"max_num_seqs", 9},
            {"max_num_batched_tokens", 13}}}};
}

inline std::vector<Ask> groups_of_samples(int groups, int samples) {
  std::vector<Ask> asks;
  for (int group = 0; group < groups; ++group) {
    const std::vector<int32_t> prompt = random_prompt(group, 3 + 11 * group % 37);
    for (int sample = 0; sample < samples; ++sample) {
      const uint64_t id = asks.size();
      asks.push_back({.id = id, .prompt = prompt, .max_new_tokens = 24, .group = uint64_t(group), .seed = 1000 + id});
    }
  }
  return asks;
}

}  // namespace native_test
