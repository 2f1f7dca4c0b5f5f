// Pre-tokenizer steps that cut pieces at delimiters.
#pragma once
#include <memory>
#include <string_view>

#include "lib/text/tokenizer/step/pre_tokenizer.hpp"

namespace hexad::text {

// What becomes of a delimiter: "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext" or "Contiguous".
enum class Delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };
Delimiter parse_delimiter(const Component& component, const char* key);

// Adds the parts of `piece` to pieces.next, cut at pieces.matches (relative to the piece, ascending). `invert`: the
// stretches between the matches are the delimiters.
void cut(Pieces& pieces, const Piece& piece, Delimiter delimiter, bool invert);

// Split (by pattern), and GPT-2's regex of ByteLevel.
std::unique_ptr<PreTokenizer> make_split(const Component& component);
std::unique_ptr<PreTokenizer> make_gpt2_split();

// Cuts at single characters that have one of the `classes` (CharClass bits); `ascii_symbols` counts too: $+<=>^`|~.
std::unique_ptr<PreTokenizer> make_class_split(uint8_t classes, bool ascii_symbols, Delimiter delimiter);

}  // namespace hexad::text
