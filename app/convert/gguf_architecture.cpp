#include "app/convert/gguf_architecture.hpp"

#include <algorithm>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::convert {
namespace {

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .model_type = "llama", .class_name = "LlamaForCausalLM", .permuted = true},
    {.name = "llama", .model_type = "mistral", .class_name = "MistralForCausalLM", .permuted = true},
    {.name = "llama",
     .model_type = "mixtral",
     .class_name = "MixtralForCausalLM",
     .permuted = true,
     .experts = "num_local_experts",
     .norm_topk = true},
    {.name = "qwen2", .model_type = "qwen2", .class_name = "Qwen2ForCausalLM", .always_qkv_bias = true},
    {.name = "qwen2moe",
     .model_type = "qwen2_moe",
     .class_name = "Qwen2MoeForCausalLM",
     .always_qkv_bias = true,
     .experts = "num_experts",
     .shared_expert = true},
    {.name = "qwen3", .model_type = "qwen3", .class_name = "Qwen3ForCausalLM", .qk_norm = true},
    {.name = "qwen3moe",
     .model_type = "qwen3_moe",
     .class_name = "Qwen3MoeForCausalLM",
     .qk_norm = true,
     .experts = "num_experts",
     .norm_topk = true},
};

constexpr GgufNumber kNumbers[] = {
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"rope.freq_base", "rope_theta", true},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", "head_dim"},
    {"rope.dimension_count", "head_dim"},
    {"vocab_size", "vocab_size"},
    {"expert_count", "num_experts"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
};

constexpr GgufRole kRoles[] = {
    {"bos", "bos_token", "bos_token_id"},
    {"eos", "eos_token", "eos_token_id"},
    {"padding", "pad_token", "pad_token_id"},
    {"unknown", "unk_token", "unk_token_id"},
};

constexpr GgufSampling kSampling[] = {
    {"general.sampling.temp", "temperature", true},
    {"general.sampling.top_k", "top_k", false},
    {"general.sampling.top_p", "top_p", true},
};

std::string listed(const char* GgufArchitecture::*field) {
  std::vector<std::string> names;
  for (const GgufArchitecture& each : kArchitectures)
    if (std::ranges::find(names, each.*field) == names.end()) names.emplace_back(each.*field);
  return joined(names);
}

}  // namespace

const GgufArchitecture* architecture_named(const std::string& name, bool experts) {
  for (const GgufArchitecture& each : kArchitectures)
    if (name == each.name && experts == (each.experts != nullptr)) return &each;
  return nullptr;
}

const GgufArchitecture* architecture_of(const std::string& model_type) {
  for (const GgufArchitecture& each : kArchitectures)
    if (model_type == each.model_type) return &each;
  return nullptr;
}

std::string known_architectures() { return listed(&GgufArchitecture::name); }
std::string known_model_types() { return listed(&GgufArchitecture::model_type); }

std::span<const GgufNumber> gguf_numbers() { return kNumbers; }
std::span<const GgufRole> gguf_roles() { return kRoles; }
std::span<const GgufSampling> gguf_sampling() { return kSampling; }

std::string gguf_key(const GgufArchitecture& architecture, const std::string& config_key) {
  for (const GgufNumber& number : kNumbers)
    if (config_key == number.config) return std::string(architecture.name) + "." + number.name;
  fail(ErrorKind::internal, "GGUF has no key for {}", config_key);
}

}  // namespace hexad::convert
