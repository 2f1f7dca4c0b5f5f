// The `decoder` of a tokenizer.json: the strings of tokens to text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/text/tokenizer/component.hpp"

namespace hexad::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the list of strings; the text is what they make when put together. Any thread.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

std::unique_ptr<Decoder> make_decoder(const Component& component);

}  // namespace hexad::text
