// The decoder whose rows do not depend on the pass, and have the bits of modeling's batch-invariant forward pass: its
// kernels, in its order, over the paged cache (modeling/op/cuda/batch_invariant.hpp). Log-probs of unfiltered draws are
// those of its log-prob head.
#pragma once
#include "plugins/native/cuda/decode/decoder.hpp"

namespace hexad::native::cuda {

// PlanShape::carried_tile.
inline constexpr int64_t kCarriedTile = 64;

class InvariantDecoder : public Decoder {
 public:
  InvariantDecoder(const modeling::ModelConfig& config, const ExecutorOptions& options);

  void allocate(const ArrayLimits& limits) override;
  void release() override;
  // Shared beginnings are whole tiles of keys, kCarriedTile.
  void run(const PassSizes& sizes, const PassArrays& arrays, const KvCache& cache) override;

 private:
  void multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& out);
  // normed = norm of the residual stream, which takes `delta` (null: nothing) first.
  void norm(const __nv_bfloat16* delta, const at::Tensor& weight, int rows);
  // Queries and keys of qkv_ are normed, where the family does, and rotated in place.
  void turn_heads(const FusedLayer& layer, int rows);
  const __nv_bfloat16* norm_heads(const __nv_bfloat16* heads, int count, const at::Tensor& weight, at::Tensor& out,
                                  int rows);
  void attend(const PassSizes& sizes, const PassArrays& arrays, const KvCache& cache, int64_t layer);
  void draw(const PassSizes& sizes, const PassArrays& arrays);

  int device_, processors_;
  cudaStream_t stream_ = nullptr;       // of the pass
  at::Tensor inverses_;                 // fp32 [rows x heads]: of norms
  at::Tensor angles_cos_, angles_sin_;  // fp32 [rows, dim / 2]
  at::Tensor normed_q_, normed_k_;      // bf16 [rows, heads x dim]; undefined without the norms
  at::Tensor states_, scalars_;  // fp32 [sequences, heads x dim], [sequences, heads x 2]: of attention to shared keys
  at::Tensor source_, scale_, targets_;                    // DrawnRows, [sequences]
  at::Tensor log_sums_drawn_, entropies_, target_logits_;  // fp32 [sequences]
};

}  // namespace hexad::native::cuda
