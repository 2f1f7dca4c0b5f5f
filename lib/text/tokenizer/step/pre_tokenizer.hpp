// The `pre_tokenizer` of a tokenizer.json: text to the pieces that the model turns into ids one by one.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer/step/component.hpp"
#include "lib/text/tokenizer/pattern/regex.hpp"

namespace hexad::text {

// A stretch of `Pieces::text`, never empty.
struct Piece {
  size_t begin, size;
  size_t from_start;  // as NormalizedText::from_start
};

// Pieces of a text on their way through the pre-tokenizers, and the memory for it, kept from text to text.
struct Pieces {
  std::string_view text;
  std::vector<Piece> list;
  std::vector<Piece> next;  // what the running step writes
  std::string buffers[2];
  int next_buffer = 0;
  std::vector<Regex::Match> matches;
  std::vector<size_t> ends;

  std::string_view view(const Piece& piece) const { return text.substr(piece.begin, piece.size); }
  // Starts over with one piece, all of `all`.
  void reset(std::string_view all, size_t from_start);
  // Adds bytes [begin, end) of `piece` to `next`, unless empty.
  void add_part(const Piece& piece, size_t begin, size_t end);
  void finish_step() { list.swap(next), next.clear(); }
};

// One step; any thread.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
};

struct PreTokenizerChain {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  // The last step is ByteLevel's, which writes every byte as a character (GPT-2's map). It is not among `steps`, so
  // that a model may take the bytes as they are.
  bool ends_in_byte_chars = false;
};

PreTokenizerChain make_pre_tokenizer(const Component& component);

// ByteLevel's map as a step, for models that cannot take bytes.
std::unique_ptr<PreTokenizer> make_byte_chars_step();

}  // namespace hexad::text
