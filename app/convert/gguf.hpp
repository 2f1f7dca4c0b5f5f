// The parts of a Hugging Face directory that are made from a GGUF file, and what both sides share.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/tensorfile/gguf.hpp"

namespace hexad::convert {

// One tensor of the Hugging Face model and where it stands in a GGUF file.
struct GgufWeight {
  std::string name;  // Hugging Face's
  std::string gguf_name;
  std::vector<int64_t> shape;
  int64_t permuted_heads = 0;  // the file's rows are in llama.cpp's rotary order for that many heads; 0: as they are
  int64_t expert = 0;          // of `experts` that the file keeps in one tensor, in their order
  int64_t experts = 0;         // 0: a tensor of its own

  std::vector<int64_t> gguf_shape() const;
  // Where the row of the file's tensor (of the expert's part of it) stands in the model's.
  int64_t model_row(int64_t row) const;
};

// A positive number of the metadata, below 2^31, so that a product of two sizes stays inside 64 bits; a positive finite
// one. Fails, naming the key, for anything else.
int64_t positive(const tensorfile::Gguf& gguf, const std::string& key);
double positive_real(const tensorfile::Gguf& gguf, const std::string& key);

// config.json of a model of gguf_architecture.hpp. Fails, naming it, on missing or impossible metadata and on an
// architecture or rope scaling that cannot be expressed.
nlohmann::ordered_json gguf_config(const tensorfile::Gguf& gguf);

// The weights that a model of such a config.json has, in the order of its layers; the experts of a tensor side by side.
std::vector<GgufWeight> gguf_weights(const nlohmann::ordered_json& config);
// Fails on a tensor that is missing, of a wrong shape, or unknown.
void check_gguf_weights(const tensorfile::Gguf& gguf, const std::vector<GgufWeight>& weights);

// The values of a weight as fp32, rows in Hugging Face's order.
std::vector<float> read_gguf_weight(const tensorfile::Gguf& gguf, const GgufWeight& weight);

// tokenizer.json and tokenizer_config.json from the tokenizer.ggml.* metadata, generation_config.json.
nlohmann::ordered_json gguf_tokenizer(const tensorfile::Gguf& gguf);
nlohmann::ordered_json gguf_tokenizer_config(const tensorfile::Gguf& gguf);
// What whoever converts it has to know: how text is split was guessed.
std::vector<std::string> gguf_notes(const tensorfile::Gguf& gguf);
nlohmann::ordered_json gguf_generation_config(const tensorfile::Gguf& gguf);

}  // namespace hexad::convert
