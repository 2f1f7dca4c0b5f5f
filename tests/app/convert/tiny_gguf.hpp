// Tiny models as GGUF files: llama, qwen2 and qwen3 with one or more layers and every part that a conversion needs.
#pragma once
#include "tests/lib/tensorfile/gguf_file.hpp"

struct TinySizes {
  uint64_t vocabulary = 6, hidden = 32, heads = 2, kv_heads = 1, head_dim = 16, inner = 64;
  uint32_t layers = 2;
};

// Values that are exact in every storage type and differ from row to row and from tensor to tensor.
inline std::vector<float> tiny_values(uint64_t count, size_t salt) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(static_cast<int>((i * 7 + i / 32 + salt * 13) % 101) - 50) / 64;
  return values;
}

inline void add_tiny_tensor(GgufFile& file, const std::string& name, std::vector<uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  file.add_tensor(name, std::move(shape), tiny_values(count, file.tensors.size()));
}

inline void add_tiny_layer(GgufFile& file, const std::string& arch, const std::string& layer, const TinySizes& size) {
  const uint64_t q = size.heads * size.head_dim, kv = size.kv_heads * size.head_dim;
  add_tiny_tensor(file, layer + "attn_norm.weight", {size.hidden});
  add_tiny_tensor(file, layer + "attn_q.weight", {q, size.hidden});
  add_tiny_tensor(file, layer + "attn_k.weight", {kv, size.hidden});
  add_tiny_tensor(file, layer + "attn_v.weight", {kv, size.hidden});
  if (arch == "qwen2") {
    add_tiny_tensor(file, layer + "attn_q.bias", {q});
    add_tiny_tensor(file, layer + "attn_k.bias", {kv});
    add_tiny_tensor(file, layer + "attn_v.bias", {kv});
  }
  if (arch == "qwen3") {
    add_tiny_tensor(file, layer + "attn_q_norm.weight", {size.head_dim});
    add_tiny_tensor(file, layer + "attn_k_norm.weight", {size.head_dim});
  }
  add_tiny_tensor(file, layer + "attn_output.weight", {size.hidden, q});
  add_tiny_tensor(file, layer + "ffn_norm.weight", {size.hidden});
  add_tiny_tensor(file, layer + "ffn_gate.weight", {size.inner, size.hidden});
  add_tiny_tensor(file, layer + "ffn_up.weight", {size.inner, size.hidden});
  add_tiny_tensor(file, layer + "ffn_down.weight", {size.hidden, size.inner});
}

// A model with a tied head; token 4 is "<s>" (control), token 5 "<u>" (user-defined).
inline GgufFile tiny_gguf(const std::string& arch = "llama", const TinySizes& size = {}) {
  GgufFile file;
  const auto number = [&](const char* key, uint64_t value) {
    file.set_number(arch + "." + key, static_cast<uint32_t>(value));
  };
  file.set_text("general.architecture", arch);
  number("embedding_length", size.hidden);
  number("attention.head_count", size.heads);
  number("attention.head_count_kv", size.kv_heads);
  number("attention.key_length", size.head_dim);
  number("feed_forward_length", size.inner);
  number("block_count", size.layers);
  number("context_length", 128);
  file.set_real(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  file.set_real(arch + ".rope.freq_base", 100000);
  file.set_text("tokenizer.ggml.model", "gpt2");
  file.set_text("tokenizer.ggml.pre", "smollm");
  file.set_texts("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "<s>", "<u>"});
  file.set_integers("tokenizer.ggml.token_type", {1, 1, 1, 1, 3, 4});
  file.set_texts("tokenizer.ggml.merges", {"a b"});
  file.set_number("tokenizer.ggml.bos_token_id", 4);
  file.set_number("tokenizer.ggml.eos_token_id", 4);
  file.set_text("tokenizer.chat_template", "{{ messages[0].content }}");
  add_tiny_tensor(file, "token_embd.weight", {size.vocabulary, size.hidden});
  for (uint32_t layer = 0; layer < size.layers; ++layer)
    add_tiny_layer(file, arch, "blk." + std::to_string(layer) + ".", size);
  add_tiny_tensor(file, "output_norm.weight", {size.hidden});
  return file;
}
