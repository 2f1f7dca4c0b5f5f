// Texts in the place of token ids, for servers that take or tell none: made by the tokenizer of the run's model.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer/tokenizer.hpp"

namespace hexad::openai {

// Functions are called by any thread, at once.
class TextTokens {
 public:
  TextTokens() = default;  // without a tokenizer
  // Of a folder with a tokenizer.json. Without one everything below throws std::runtime_error that says why.
  explicit TextTokens(const std::filesystem::path& folder);

  bool is_there() const { return tokenizer_ != nullptr; }
  const std::string& why_not() const { return why_not_; }
  int32_t size() const { return tokenizer_ ? tokenizer_->vocab_size() : 0; }

  // The text of which a server makes just these ids: with the special tokens that the tokenizer adds to every text.
  // Nothing: there is none.
  std::optional<std::string> text_of(std::span<const int32_t> prompt) const;
  // Ids of an answer's text. Throws std::runtime_error unless they decode to it.
  std::vector<int32_t> ids_of(std::string_view answer) const;
  // The same of an answer that is told as the texts of its tokens: an id each, or std::runtime_error.
  std::vector<int32_t> ids_of(std::span<const std::string> tokens) const;
  // Of a text that is not an answer's. Empty where a letter of it is no token.
  std::vector<int32_t> ids_of_prompt(std::string_view text) const;
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

 private:
  const text::Tokenizer& need() const;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::string why_not_;
};

}  // namespace hexad::openai
