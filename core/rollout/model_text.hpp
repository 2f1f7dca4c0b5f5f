// A model's text side: tokenizer, chat template, special tokens, the tokens that end a response.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/typed/policy_config.hpp"
#include "core/data/dataset/processor.hpp"
#include "lib/text/template/chat_template.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"

namespace hexad::rollout {

struct ModelText {
  std::filesystem::path tokenizer_dir;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;  // empty: messages are concatenated
  std::optional<text::ChatTemplate> tool_template;  // of rows with tools
  std::string bos_token, eos_token;
  std::map<std::string, std::string> special_tokens;  // by the names that templates use
  std::vector<int64_t> eos_ids;  // of generation_config.json, config.json and tokenizer_config.json, together
  nlohmann::ordered_json chat_template_kwargs = nlohmann::ordered_json::object();

  // encode and render as the data processors need them; borrows this object.
  data::TextTools tools() const;
};

// vocab_size of config.json; 0: it has none.
int64_t vocabulary_size(const std::filesystem::path& model_dir);

// Reads `model_dir` and policy.tokenizer. Throws Error(data) if the tokenizer has ids beyond the model's vocabulary.
ModelText load_model_text(const std::filesystem::path& model_dir, const config::TokenizerConfig& config);

}  // namespace hexad::rollout
