// The weights as the GPU's passes read them: matrices that read the same input are one.
#pragma once
#include "modeling/family/model_config.hpp"
#include "plugins/native/model/weights.hpp"

namespace hexad::native::cuda {

struct FusedLayer {
  at::Tensor input_norm, post_attention_norm, q_norm, k_norm;  // [width]; undefined where the family has none
  at::Tensor qkv, qkv_bias;                                    // [q + k + v, hidden], [q + k + v] or undefined
  at::Tensor output, gate_up, down;                            // [hidden, q], [2 * width, hidden], [hidden, width]
  // Of the matrices' rows in FP8 (fp8_rows.hpp), else undefined.
  at::Tensor qkv_scales = {}, output_scales = {}, gate_up_scales = {}, down_scales = {};
};

struct FusedWeights {
  // Views of `weights`, which lie as WeightStore::places() puts them. `config` is the shard's own.
  FusedWeights(const modeling::ModelConfig& config, const WeightMap& weights, const Shard& shard = {});

  at::Tensor embedding, head, final_norm;  // [vocab, hidden], the shard's rows of the head; one memory when tied
  std::vector<FusedLayer> layers;
};

}  // namespace hexad::native::cuda
