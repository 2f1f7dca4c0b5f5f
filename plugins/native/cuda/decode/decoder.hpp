// The kernels of one pass, in order: what a CUDA graph holds.
#pragma once
#include <cuda_runtime_api.h>

#include <optional>

#include "plugins/native/cuda/fp8/fp8_linear.hpp"
#include "plugins/native/cuda/fused_weights.hpp"
#include "plugins/native/cuda/sample/part_draws.hpp"
#include "plugins/native/cuda/decode/pass_arrays.hpp"
#include "plugins/native/cuda/side_stream.hpp"
#include "plugins/native/model/executor.hpp"

namespace hexad::native::cuda {

// What is launched: at least what the pass has.
struct PassSizes : PassArrays::Counts {
  int64_t prompt_requests = 0, prompt_items = 0;
  bool joins = false;  // of several ranks: rows of logits are made whole on each, as a filter wants to see them
  bool operator==(const PassSizes&) const = default;
};

class Decoder {
 public:
  // `config`: of this rank of options.replica.
  Decoder(const modeling::ModelConfig& config, const ExecutorOptions& options);
  virtual ~Decoder() = default;

  // Weights at their places (WeightStore); an empty map forgets them. Until then other values may come to the places.
  void set_weights(const WeightMap& places);
  // Makes room for passes within `limits`; what a graph has captured before is stale. And gives it back.
  virtual void allocate(const ArrayLimits& limits);
  virtual void release();

  // On LibTorch's current stream. Decode rows come first, then those of prompts; every draw reads its task.
  virtual void run(const PassSizes& sizes, const PassArrays& arrays, const KvCache& cache);

  // fp32 [rows, vocab] of the last pass, which joined them if several ranks run it.
  at::Tensor logits(int64_t rows) const { return logits_.narrow(0, 0, rows); }
  const int32_t* tokens() const { return tokens_.const_data_ptr<int32_t>(); }  // of its draws
  const float* logprobs() const { return logprobs_.const_data_ptr<float>(); }

 protected:
  void attend(const PassSizes& sizes, const PassArrays& arrays, const KvCache& cache, int64_t layer,
              cudaStream_t stream);
  // Logits of last_: this rank's columns, contiguous; and of all ranks' parts of the vocabulary.
  at::Tensor make_own_logits(int64_t rows, cudaStream_t stream);
  void make_logits(int64_t rows, cudaStream_t stream);
  // Draws from the logits of last_.
  void make_draws(const PassSizes& sizes, const PassArrays& arrays, cudaStream_t stream);
  at::Tensor rows_of(const at::Tensor& buffer, int64_t rows) const { return buffer.narrow(0, 0, rows); }
  // What a product of the layers reads: rows of a buffer, or with fp8, and many of them, their casts.
  Rows input(const at::Tensor& buffer, int64_t rows) const;
  void make_activated(const FusedLayer& layer, const Rows& x, const Rows& activated, cudaStream_t stream);

  modeling::ModelConfig config_;
  ExecutorOptions options_;
  AttentionShape shape_;
  SideStream beside_;
  at::Tensor cos_, sin_;  // fp32 [max_length, head_dim / 2]
  std::optional<FusedWeights> weights_;
  // [rows, width] each: residual and logits fp32, the others bf16.
  at::Tensor residual_, normed_, qkv_, attended_, gate_up_, activated_, delta_, last_, logits_;
  at::Tensor casts_, cast_scales_;  // with fp8: what the next product reads, e4m3 [rows * widest] and fp32 [rows]
  at::Tensor partials_, log_sums_;  // of attention
  at::Tensor own_logits_, parts_;   // of a replica of several ranks: this one's, and everyone's; fp32
  std::optional<PartDraws> part_draws_;
  at::Tensor tokens_, logprobs_;  // int32, fp32 [sequences]
};

}  // namespace hexad::native::cuda
