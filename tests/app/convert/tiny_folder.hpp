// Tiny models as Hugging Face folders, of every family that GGUF files are made of, with a byte-level tokenizer.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/convert/gguf.hpp"
#include "app/convert/huggingface_config.hpp"
#include "lib/tensorfile/safetensors_writer.hpp"
#include "tests/app/convert/tiny_gguf.hpp"
#include "tests/checkpoint/temp_folder.hpp"

using Json = nlohmann::ordered_json;

constexpr int64_t kTinyRows = 272;  // more than the tokenizer has tokens

inline const std::vector<std::string>& tiny_types() {
  static const std::vector<std::string> types = {"llama", "mistral",   "mixtral",  "qwen2",
                                                 "qwen3", "qwen2_moe", "qwen3_moe"};
  return types;
}

// As files of the hub have it, each family with keys of its own.
inline Json tiny_config(const std::string& type) {
  Json config = {{"model_type", type},       {"architectures", {"as it likes"}},
                 {"hidden_size", 32},        {"intermediate_size", 64},
                 {"num_hidden_layers", 2},   {"num_attention_heads", 2},
                 {"num_key_value_heads", 1}, {"max_position_embeddings", 128},
                 {"rms_norm_eps", 1e-6},     {"rope_theta", 1000000},
                 {"hidden_act", "silu"},     {"bos_token_id", 256},
                 {"eos_token_id", 257},      {"tie_word_embeddings", type == "qwen3"},
                 {"vocab_size", kTinyRows}};
  if (type == "qwen3" || type == "qwen3_moe") config["head_dim"] = 16;
  if (type == "llama") config.update({{"attention_bias", true}, {"mlp_bias", true}});
  if (type == "mixtral") config.update({{"num_local_experts", 4}, {"sliding_window", nullptr}});
  if (type.ends_with("_moe")) config.update({{"num_experts", 4}, {"moe_intermediate_size", 32}});
  if (type == "qwen2_moe") config.update({{"shared_expert_intermediate_size", 64}, {"norm_topk_prob", false}});
  if (type == "qwen3_moe") config.update({{"norm_topk_prob", true}, {"mlp_only_layers", Json::array()}});
  if (type == "mixtral" || type.ends_with("_moe")) config["num_experts_per_tok"] = 2;
  return config;
}

// GPT-2's characters for bytes: printable ones stand for themselves, the others follow from U+0100 on.
inline std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    const int code = itself ? byte : next++;
    tokens.push_back(code < 128
                         ? std::string(1, static_cast<char>(code))
                         : std::string{static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))});
  }
  return tokens;
}

// Bytes, two special tokens (256 and 257), one that is none, and merges: split as Qwen 2 does.
inline Json tiny_tokenizer() {
  const std::string pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
                              R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
  Json tokenizer = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  const auto added = [](int id, const char* content, bool special) {
    return Json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", special}};
  };
  tokenizer["added_tokens"] = {added(256, "<|start|>", true), added(257, "<|end|>", true), added(263, "<tool>", false)};
  tokenizer["normalizer"] = {{"type", "NFC"}};
  const Json split = {
      {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
  tokenizer["post_processor"] = bytes;
  tokenizer["decoder"] = bytes;
  Json vocabulary = Json::object();
  const std::vector<std::string> tokens = byte_tokens();
  for (size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"h", "e"}, {"l", "l"}, {"he", "ll"}, {"\u0120", "hell"}, {"1", "2"}};
  vocabulary["<|start|>"] = 256, vocabulary["<|end|>"] = 257;
  for (size_t i = 0; i < merges.size(); ++i) vocabulary[merges[i].first + merges[i].second] = 258 + i;
  Json pairs = Json::array();
  for (const auto& [left, right] : merges) pairs.push_back(Json::array({left, right}));
  tokenizer["model"] = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", ""},
                        {"end_of_word_suffix", ""},
                        {"fuse_unk", false},
                        {"byte_fallback", false},
                        {"ignore_merges", false},
                        {"vocab", vocabulary},
                        {"merges", pairs}};
  return tokenizer;
}

inline void write_tiny_text(const std::filesystem::path& folder, const Json& tokenizer, const Json& config) {
  std::ofstream(folder / "tokenizer.json") << tokenizer.dump();
  std::ofstream(folder / "tokenizer_config.json") << config.dump();
}

// What is wrong with the weights of a folder.
struct TinyFault {
  std::string without = "", extra = "";  // tensors
  float value = 0;                       // instead of element 37 of the embeddings; 0: none
};

// Makes `folder` anew, and returns its config.json: tiny_config with `changes`.
inline Json write_tiny_folder(const std::filesystem::path& folder, const std::string& type,
                              hexad::tensorfile::DType dtype, const Json& changes = Json::object(),
                              const TinyFault& fault = {}) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  Json config = tiny_config(type);
  if (!changes.is_null()) config.update(changes);
  std::ofstream(folder / "config.json") << config.dump();
  std::vector<hexad::tensorfile::TensorSpec> specs;
  for (const auto& weight : hexad::convert::gguf_weights(hexad::convert::known_config(config, "tiny")))
    if (weight.name != fault.without) specs.push_back({weight.name, dtype, weight.shape});
  if (!fault.extra.empty()) specs.push_back({fault.extra, dtype, {2}});
  hexad::tensorfile::SafetensorsWriter writer(folder / "model.safetensors", specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    std::vector<float> values = tiny_values(specs[i].elements(), i);
    if (i == 0 && fault.value != 0) values[37] = fault.value;
    std::vector<std::byte> bytes(specs[i].bytes());
    hexad::tensorfile::from_float32(values, dtype, bytes);
    writer.write(specs[i].name, bytes);
  }
  writer.finish();
  write_tiny_text(folder, tiny_tokenizer(), {{"eos_token", "<|end|>"}, {"chat_template", "{{ messages[0].content }}"}});
  return config;
}
