#include "lib/text/tokenizer/tokenizer_config.hpp"

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
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

void read_templates(const Component& config, std::map<std::string, std::string>& templates) {
  if (!config.has("chat_template")) return;
  if (!config.value().at("chat_template").is_array()) {
    templates["default"] = config.text("chat_template");
    return;
  }
  for (const Component& entry : config.children("chat_template"))
    templates[entry.text("name")] = entry.text("template");
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
  TokenizerConfig config;
  const std::filesystem::path file = folder / "tokenizer_config.json", jinja = folder / "chat_template.jinja";
  if (std::filesystem::exists(file)) {
    config = from_json(read_json<nlohmann::json>(file), file.string());
  }
  if (std::filesystem::exists(jinja)) config.chat_templates["default"] = read_file(jinja);
  return config;
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
  read_templates(root, config.chat_templates);
  config.model_max_length = read_length(root);
  return config;
}

}  // namespace hexad::text
