// What the hardware allows: a decoding pass can be no faster than its products (weights read once, or their arithmetic)
// and the keys and values that it reads, one after the other.
#pragma once
#include <algorithm>

#include "benchmarks/generate/shapes.hpp"
#include "benchmarks/generate/workload.hpp"

namespace generate {

struct Hardware {
  double bandwidth = 4.3e12, flops = 0.79e15, fp8_flops = 1.384e15;  // of one H200, measured: copy, products of 8192^3
};

struct Ceiling {
  double cascade, plain;  // tokens/s, a group's prompt read once a group or once a sample
};

// fp8: the matrices of layers, with what they read; the head stays in bf16. fp8_cache: keys and values.
inline Ceiling ceiling_of(const hexad::modeling::ModelConfig& config, const Workload& work, int64_t running, bool fp8,
                          bool fp8_cache, const Hardware& gpu = {}) {
  double tokens = 0, prompt = 0, prompts = 0, own = 0;
  for (const Sample& sample : work.samples) {
    tokens += double(sample.new_tokens);
    own += double(sample.new_tokens) * double(sample.new_tokens) / 2;
    prompt += double(sample.new_tokens) * double(work.prompts[sample.prompt].size());
  }
  for (const auto& ids : work.prompts) prompts += double(ids.size());
  const double narrow = fp8 ? parameters_of_layers(config) : 0, wide = parameters_read(config) - narrow,
               group = double(work.samples.size()) / double(work.prompts.size());
  const double kv =  // bytes of a position
      (fp8_cache ? 2.0 : 4.0) * double(config.num_layers * config.num_kv_heads * config.head_dim);
  const double batch = std::min(double(running), double(work.samples.size()));
  const double products = (std::max(2 * wide / gpu.bandwidth, 2 * wide * batch / gpu.flops) +
                           std::max(narrow / gpu.bandwidth, 2 * narrow * batch / gpu.fp8_flops)) /
                          batch;
  const double prefill = 2 * wide / gpu.flops + 2 * narrow / gpu.fp8_flops;  // of a prompt's token
  const auto rate = [&](double shared) {
    return 1 / (products + (own + prompt / shared) / tokens * kv / gpu.bandwidth + prompts * prefill / tokens);
  };
  return {rate(group), rate(1)};
}

}  // namespace generate
