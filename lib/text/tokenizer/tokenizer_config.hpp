// `tokenizer_config.json`: special tokens by role and limits that stand beside a tokenizer.json. (Chat templates:
// template/chat_template.hpp.)
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::text {

struct TokenizerConfig {
  // Token strings, from either form: "</s>" or {"content": "</s>", ...}. Absent when missing or null.
  std::optional<std::string> bos_token, eos_token, pad_token, unk_token;
  // Null means: follow the post-processor of tokenizer.json.
  std::optional<bool> add_bos_token, add_eos_token;
  // All special tokens by the names that chat templates use: those above, sep_token ..., and the model's own.
  std::map<std::string, std::string> special_tokens;
  // Absent when missing or beyond 2^53 (transformers writes 1e30 for "no limit").
  std::optional<int64_t> model_max_length;

  // Reads `folder`/tokenizer_config.json and special_tokens_map.json (folder_tokens.hpp); every field is absent when
  // there is no such file. Throws Error(data) that names the file and the key on malformed content.
  static TokenizerConfig load(const std::filesystem::path& folder);
  static TokenizerConfig from_json(const nlohmann::json& document, const std::string& origin);
};

}  // namespace hexad::text
