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
  // Lets go of each matrix of `weights` (float or bfloat16) as soon as it has a packed copy.
  CpuWeights(const modeling::ModelConfig& config, WeightMap weights);

  // Copies of them in `dtype`, as they came.
  WeightMap unpacked(const modeling::ModelConfig& config, at::ScalarType dtype) const;

  const void *embedding, *head;  // packed [vocab, hidden]; the same when tied
  const float* final_norm;
  std::vector<CpuLayer> layers;

 private:
  WeightMap kept_;  // what the pointers point to
};

}  // namespace hexad::native
