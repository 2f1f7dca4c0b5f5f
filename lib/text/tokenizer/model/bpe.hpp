// Byte-pair encoding over characters, or over bytes behind the ByteLevel pre-tokenizer.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/text/tokenizer/model/bpe_merge.hpp"
#include "lib/text/tokenizer/model/model.hpp"
#include "lib/text/tokenizer/model/word_cache.hpp"

namespace hexad::text {

class Bpe final : public Model {
 public:
  explicit Bpe(const Component& component);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids) const override;
  bool take_bytes() override;

 private:
  struct Scratch;

  void read_merges(const Component& component);
  std::optional<int32_t> whole_word(std::string_view word) const;
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;
  // Writes the tokens of a word's characters; true when one of them is the unknown token.
  bool split_characters(std::string_view word, std::vector<int32_t>& tokens) const;
  bool add_bytes_of(std::string_view character, std::vector<int32_t>& tokens) const;

  MergeTable merges_;
  std::optional<int32_t> unknown_;
  std::string prefix_, suffix_;  // of tokens inside, at the end of a word
  bool fuse_unknown_, byte_fallback_, ignore_merges_;
  FlatMap<int32_t> characters_;                              // tokens of one character, by code point
  std::array<int32_t, 256> fallback_;                        // tokens "<0x00>".. of bytes, -1: none
  std::optional<std::array<int32_t, 256>> bytes_;            // set: pieces come as bytes, which have these tokens
  std::unordered_map<std::string, int32_t> words_as_bytes_;  // whole words for ignore_merges, when pieces are bytes
  std::string boundary_;  // no merge reaches over the front of this character, unless it follows itself; empty: none
};

}  // namespace hexad::text
