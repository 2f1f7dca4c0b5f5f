// A Hugging Face `tokenizer.json`: text to token ids and back, equal to the `tokenizers` library (0.23).
//
// Encoding runs: added tokens (not normalized) | normalizer | added tokens (normalized) | pre-tokenizer | model |
// post-processor. Decoding: ids to token strings | decoder. `truncation` and `padding` of the file are not applied, as
// transformers resets both on every call.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::text {

class Tokenizer {
 public:
  // Reads `path`, a tokenizer.json or a folder that holds one. Tokens that other files of the folder add belong to it
  // (folder_tokens.hpp). Throws Error(data) that names the file and the part of it that is missing, malformed or not
  // supported, or a token whose id another file says otherwise.
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& path);

  // The same from a parsed document; `origin` names it in errors (a GGUF file, for example). Plain `json`, not
  // `ordered_json`: inserting a vocabulary into the latter takes quadratic time.
  static std::shared_ptr<const Tokenizer> from_json(const nlohmann::json& document, const std::string& origin);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // All const members may be called from any number of threads at once.

  // Ids of a text. Bytes that are not UTF-8 count as U+FFFD, one for each maximal part of a broken sequence (Python's
  // errors="replace"). `add_special_tokens`: what the post-processor adds around the text (bos, eos).
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;

  // Ids of a text and a second one, joined by the post-processor's template for pairs.
  std::vector<int32_t> encode_pair(std::string_view text, std::string_view pair, bool add_special_tokens) const;

  // Text of ids, always valid UTF-8. Ids that no token has are left out, as are special tokens when asked.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // Highest id + 1, added tokens included: the number of embedding rows that the ids need.
  int32_t vocab_size() const;

  // Id of a token by its string in the vocabulary ("Ġthe", "<|im_end|>").
  std::optional<int32_t> token_to_id(std::string_view token) const;

  // String of an id as the decoder sees it; empty when no token has the id.
  std::string id_to_token(int32_t id) const;

  // True when `decode` with skip_special_tokens leaves the id out.
  bool is_special(int32_t id) const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace hexad::text
