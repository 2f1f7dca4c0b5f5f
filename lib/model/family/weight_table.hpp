// Every weight of a model under its Hugging Face name, in one fixed order.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/family/model_config.hpp"

namespace hexad::model {

// `unit` is the group that is gathered, freed and recomputed together: "embed", "layers.0" ... "layers.N-1", "head"
// (final norm, and lm_head when it is not tied: a tied lm_head is the embedding, and not in the table; or the reward
// head).
struct WeightInfo {
  std::string hf_name;
  std::vector<int64_t> shape;
  std::string unit;
  bool trainable = true;  // false: not moved by gradients (a router's expert bias, what is frozen); kept in fp32
};

// The expert that a weight belongs to; absent for all others, routers and shared experts among them.
std::optional<int64_t> expert_of(const WeightInfo& info);

std::vector<WeightInfo> weight_table(const ModelConfig& config);

// Units in forward order.
std::vector<std::string> weight_units(const ModelConfig& config);

// The weight that makes the logits of a layer's router (not its expert bias).
bool is_router(const WeightInfo& info);

inline constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
inline constexpr const char* kFinalNormName = "model.norm.weight";
inline constexpr const char* kScoreName = "score.weight";
// Name of the weight that makes the logits: "lm_head.weight", or the embedding's when tied; or the scores.
const char* head_weight_name(const ModelConfig& config);

}  // namespace hexad::model
