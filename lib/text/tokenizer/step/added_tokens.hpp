// The `added_tokens` of a tokenizer.json: strings that are found in the text and never reach the model.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/text/tokenizer/model/byte_trie.hpp"
#include "lib/text/tokenizer/step/component.hpp"
#include "lib/text/tokenizer/step/normalizer.hpp"
#include "lib/text/tokenizer/model/vocabulary.hpp"

namespace hexad::text {

struct AddedToken {
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// A stretch of a text: an added token, or text for the model (id < 0).
struct Section {
  size_t begin, end;
  int32_t id;
};

// A set of added tokens that is searched for in a text.
class AddedTokenMatcher {
 public:
  // `pattern` is the string to find. Of equal patterns the lowest id counts.
  void add(std::string_view pattern, int32_t id, const AddedToken& token);

  // Appends sections that cover `text`. At each place the longest token counts, also when it is then dropped for not
  // standing alone (single_word). lstrip and rstrip take in the white space beside a token.
  void split(std::string_view text, std::vector<Section>& sections) const;

 private:
  struct Rule {
    int32_t id;
    bool single_word, lstrip, rstrip;
  };
  size_t next_candidate(std::string_view text, size_t from) const;

  ByteTrie trie_;  // to indices of rules_
  std::vector<Rule> rules_;
  std::string first_bytes_;  // of all patterns, each once
  bool starts_[256] = {};    // the same as a table
};

class AddedTokens {
 public:
  // Adds the list in order: a token that the model has keeps the model's id, another one gets the next free id. The
  // "id" of the file has no say, as in `tokenizers`.
  AddedTokens(const Component& document, const Vocabulary& model, const Normalizer* normalizer);

  std::optional<int32_t> find(std::string_view content) const;
  // What the decoder sees: the content, normalized when the token is. Null when no added token has the id.
  const std::string* decoder_text(int32_t id) const;
  bool is_special_text(std::string_view text) const;
  int32_t size() const { return size_; }  // highest id + 1, 0 when there is none

  const AddedTokenMatcher& plain() const { return plain_; }
  const AddedTokenMatcher& normalized() const { return normalized_; }

 private:
  void add(const AddedToken& token, int32_t id, const Normalizer* normalizer);

  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, AddedToken> tokens_;
  std::unordered_map<int32_t, std::string> decoder_texts_;
  std::unordered_map<std::string, bool> special_;
  AddedTokenMatcher plain_, normalized_;
  int32_t size_ = 0;
};

}  // namespace hexad::text
