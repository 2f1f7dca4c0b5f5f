#include "lib/text/tokenizer/tokenizer_config.hpp"

#include "lib/text/tokenizer/folder_tokens.hpp"
#include "lib/text/tokenizer/step/component.hpp"

namespace hexad::text {
namespace {

std::optional<std::string> read_token(const Component& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  if (config.value().at(key).is_object()) return config.child(key).text("content");
  return config.text(key);
}

std::optional<bool> read_flag(const Component& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  return config.boolean_or(key, false);
}

std::optional<int64_t> read_length(const Component& config) {
  constexpr double kNoLimit = 9007199254740992.0;  // 2^53
  if (!config.has("model_max_length")) return std::nullopt;
  const nlohmann::json& value = config.value().at("model_max_length");
  if (!value.is_number() || value.get<double>() < 0) config.refuse("\"model_max_length\" wants a number of tokens");
  if (value.get<double>() >= kNoLimit) return std::nullopt;
  return value.get<int64_t>();
}

}  // namespace

TokenizerConfig TokenizerConfig::load(const std::filesystem::path& folder) {
  return from_json(read_folder_config(folder), (folder / "tokenizer_config.json").string());
}

TokenizerConfig TokenizerConfig::from_json(const nlohmann::json& document, const std::string& origin) {
  const Component root(document, origin);
  TokenizerConfig config;
  config.bos_token = read_token(root, "bos_token");
  config.eos_token = read_token(root, "eos_token");
  config.pad_token = read_token(root, "pad_token");
  config.unk_token = read_token(root, "unk_token");
  config.add_bos_token = read_flag(root, "add_bos_token");
  config.add_eos_token = read_flag(root, "add_eos_token");
  config.special_tokens = text::special_tokens(document, origin);
  config.model_max_length = read_length(root);
  return config;
}

}  // namespace hexad::text
