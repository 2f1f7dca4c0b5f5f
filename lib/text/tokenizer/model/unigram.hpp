// SentencePiece's unigram model: the cheapest way to spell a piece (Viterbi over token scores).
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "lib/text/tokenizer/model/byte_trie.hpp"
#include "lib/text/tokenizer/model/model.hpp"
#include "lib/text/tokenizer/model/word_cache.hpp"

namespace hexad::text {

class Unigram final : public Model {
 public:
  explicit Unigram(const Component& component);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  // Throws Error(data) for a character that no token has when the model has no unknown token.
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids) const override;

 private:
  struct Scratch;
  Unigram(const Component& component, std::vector<double> scores);

  void find_best_path(std::string_view piece, Scratch& scratch) const;
  void emit_path(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  void emit_token(std::string_view text, std::vector<int32_t>& ids) const;

  std::vector<double> scores_;
  double worst_;
  std::optional<int32_t> unknown_;
  bool byte_fallback_;
  ByteTrie trie_;
  std::array<int32_t, 256> fallback_;  // tokens "<0x00>".. of bytes, -1: none
  std::string where_;
};

}  // namespace hexad::text
