// The weights as the CPU's kernels read them: packed matrices, and vectors in fp32.
#pragma once
#include <vector>

#include "plugins/native/model/weights.hpp"

namespace hexad::native {

struct CpuLayer {
  // Matrices, packed (cpu/gemm.hpp), in the model's dtype.
  const void *q, *k, *v, *o, *gate, *up, *down;
  // Vectors; null where the family has none.
  const float *input_norm, *post_attention_norm, *q_norm, *k_norm;
  const float *q_bias, *k_bias, *v_bias, *o_bias, *gate_bias, *up_bias, *down_bias;
};

struct CpuWeights {
  // The shard's part of a model. Lets go of each matrix of `weights` (float or bfloat16) as soon as it has a packed
  // copy.
  CpuWeights(const modeling::ModelConfig& config, WeightMap weights, const Shard& shard = {});

  // Copies of them in `dtype`, as they came.
  WeightMap unpacked(const std::vector<WeightPart>& parts, at::ScalarType dtype) const;

  // Packed [vocab, hidden], and of the head the shard's rows; the same when tied and whole.
  const void *embedding, *head;
  const float* final_norm;
  std::vector<CpuLayer> layers;

 private:
  WeightMap kept_;        // what the pointers point to
  at::Tensor tied_head_;  // where it is a part of the embedding
};

}  // namespace hexad::native
