// The weights as the CPU's kernels read them: plain pointers into a set of weights that this keeps alive.
#pragma once
#include <vector>

#include "plugins/native/model/weights.hpp"

namespace hexad::native {

struct CpuLayer {
  // Matrices [out, in] in the model's dtype.
  const void *q, *k, *v, *o, *gate, *up, *down;
  // Vectors in fp32; null where the family has none.
  const float *input_norm, *post_attention_norm, *q_norm, *k_norm;
  const float *q_bias, *k_bias, *v_bias, *o_bias, *gate_bias, *up_bias, *down_bias;
};

struct CpuWeights {
  CpuWeights(const modeling::ModelConfig& config, WeightMap weights);

  const void *embedding, *head;  // [vocab, hidden]
  const float* final_norm;
  std::vector<CpuLayer> layers;

 private:
  WeightMap weights_;
  std::vector<at::Tensor> vectors_;
};

}  // namespace hexad::native
