// The architectures that are known here on both sides, and how GGUF and config.json call what both of them say. One
// table for both directions.
#pragma once
#include <span>
#include <string>

namespace hexad::convert {

struct GgufArchitecture {
  const char* name;        // general.architecture
  const char* model_type;  // config.json's
  const char* class_name;  // its architectures[0]
  bool permuted = false;   // rows of q and k are in the order in which llama.cpp rotates
  bool qk_norm = false;
  bool always_qkv_bias = false;
  const char* experts = nullptr;  // the key of config.json that counts them; null: a dense model
  bool shared_expert = false;
  bool norm_topk = false;  // llama.cpp makes the weights of the chosen experts sum to 1
};

// Null where it is unknown. Of two that GGUF calls alike the first without experts, or the one with them.
const GgufArchitecture* architecture_named(const std::string& name, bool experts);
// "mistral" is a llama there.
const GgufArchitecture* architecture_of(const std::string& model_type);
std::string known_architectures();
std::string known_model_types();

// A number, positive, that GGUF keeps under "ARCHITECTURE.name" and config.json under `config`.
struct GgufNumber {
  const char* name;
  const char* config;
  bool real = false;  // fp32; else an unsigned integer of 32 bits
};
std::span<const GgufNumber> gguf_numbers();
// "llama.embedding_length" of "hidden_size": the first of the table.
std::string gguf_key(const GgufArchitecture& architecture, const std::string& config_key);

// A special token: the name in "tokenizer.ggml.NAME_token_id", the keys of tokenizer_config.json and config.json.
struct GgufRole {
  const char* name;
  const char* token;
  const char* id;
};
std::span<const GgufRole> gguf_roles();

// How to sample, of generation_config.json.
struct GgufSampling {
  const char* name;
  const char* config;
  bool real;
};
std::span<const GgufSampling> gguf_sampling();

}  // namespace hexad::convert
