// The `decoder` of a tokenizer.json: the strings of tokens to text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lib/text/tokenizer/step/component.hpp"

namespace hexad::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the list of strings; the text is what they make when put together. Throws Error(data) where that would be
  // more than `most` bytes (most_made() in normalizer.hpp). Any thread.
  virtual void apply(std::vector<std::string>& tokens, size_t most) const = 0;
  // True when the text is that of the tokens' byte_level_text put together, broken UTF-8 replaced.
  virtual bool is_byte_level() const { return false; }
};

// What a token contributes to a byte-level text: the bytes that its characters stand for, or else the token itself.
std::string byte_level_text(const std::string& token);

std::unique_ptr<Decoder> make_decoder(const Component& component);

}  // namespace hexad::text
