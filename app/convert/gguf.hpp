// The parts of a Hugging Face directory that are made from a GGUF file.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/tensorfile/gguf.hpp"

namespace hexad::convert {

// One tensor of the Hugging Face model and where it comes from.
struct GgufWeight {
  std::string name;  // Hugging Face's
  std::string gguf_name;
  std::vector<int64_t> shape;
  int64_t permuted_heads = 0;  // rows are in llama.cpp's rotary order for that many heads; 0: as they are
};

// config.json of a llama, qwen2 or qwen3 model. Fails, naming it, on missing or impossible metadata and on an
// architecture or rope scaling that cannot be expressed.
nlohmann::ordered_json gguf_config(const tensorfile::Gguf& gguf);

// The weights that a model of `config` has, in the order of its layers. Fails on a tensor that is missing, of a wrong
// shape, or unknown.
std::vector<GgufWeight> gguf_weights(const tensorfile::Gguf& gguf, const nlohmann::ordered_json& config);

// The values of a weight as fp32, rows in Hugging Face's order.
std::vector<float> read_gguf_weight(const tensorfile::Gguf& gguf, const GgufWeight& weight);

// tokenizer.json and tokenizer_config.json from the tokenizer.ggml.* metadata, generation_config.json.
nlohmann::ordered_json gguf_tokenizer(const tensorfile::Gguf& gguf);
nlohmann::ordered_json gguf_tokenizer_config(const tensorfile::Gguf& gguf);
// What whoever converts it has to know: how text is split was guessed.
std::vector<std::string> gguf_notes(const tensorfile::Gguf& gguf);
nlohmann::ordered_json gguf_generation_config(const tensorfile::Gguf& gguf);

}  // namespace hexad::convert
