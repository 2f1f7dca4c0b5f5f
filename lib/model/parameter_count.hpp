// How many parameters a model has, by role, from its config.json alone: what memory of a layout is computed from before
// any weight is read.
#pragma once
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

namespace hexad::model {

struct ParameterCount {
  int64_t layers = 0;
  int64_t expert_layers = 0;       // those with experts; the others have a dense MLP
  int64_t first_expert_layer = 0;  // layers before it are dense; without experts: layers
  int64_t experts = 0;             // routed ones of a layer with experts

  int64_t embedding = 0;
  int64_t head = 0;  // 0 where the embedding is the head too
  // Of one layer, biases included.
  int64_t attention = 0;    // its projections
  int64_t key_value = 0;    // of these: to keys and values, which are replicated where heads are fewer than ranks
  int64_t latent = 0;       // of these: to the latents of multi-head latent attention
  int64_t output_bias = 0;  // of these: behind the output projection
  int64_t norms = 0;        // around attention and MLP, and inside of attention
  // Of one layer of its kind.
  int64_t dense_mlp = 0;
  int64_t mlp_bias = 0;  // of dense_mlp: behind its last projection
  int64_t router = 0;
  int64_t expert_bias = 0;  // of the router; no gradient moves it
  int64_t expert = 0;       // one routed expert
  int64_t shared = 0;       // the shared experts together
  int64_t shared_gate = 0;  // what scales their output
  int64_t final_norm = 0;
  // Elements of a token in one layer: its queries; its keys, and as many values. 0 with multi-head latent attention.
  int64_t query_size = 0, key_size = 0;
  bool query_norm = false;  // queries and keys have norms of their own

  int64_t dense_layers() const { return layers - expert_layers; }
  int64_t all_experts() const { return expert_layers * experts * expert; }
  // What every tensor-parallel rank holds whole: norms, routers, latents, and biases that are added to sums over ranks.
  int64_t uncut() const {
    return final_norm + layers * (norms + latent + output_bias) + dense_layers() * mlp_bias +
           expert_layers * (router + expert_bias + shared_gate);
  }
  int64_t total() const {
    return embedding + head + final_norm + layers * (attention + norms) + dense_layers() * dense_mlp +
           expert_layers * (router + expert_bias + experts * expert + shared + shared_gate);
  }
};

// Families: llama, mistral, qwen2, qwen3, qwen2_moe, qwen3_moe, mixtral, deepseek_v3, with the weights that
// modeling/family/weight_table.cpp gives them. Keys that a config.json may leave out have the defaults of transformers'
// configuration classes. Nothing for another family, where a size is missing or no such number, and beyond 10^18
// parameters.
std::optional<ParameterCount> parameter_count(const nlohmann::ordered_json& config);

}  // namespace hexad::model
