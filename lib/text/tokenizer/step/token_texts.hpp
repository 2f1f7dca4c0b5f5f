// The text of a sequence token by token.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "lib/text/tokenizer/step/stream_decoder.hpp"

namespace hexad::text {

// Of every token what it adds to the text: together they are the text. A character of several tokens stands at its
// last.
inline std::vector<std::string> token_texts(const std::shared_ptr<const Tokenizer>& tokenizer,
                                            std::span<const int64_t> ids) {
  StreamDecoder decoder(tokenizer, /*skip_special_tokens=*/false);
  std::vector<std::string> texts;
  for (const int64_t id : ids) texts.push_back(decoder.push_or_restart(static_cast<int32_t>(id)).value_or(""));
  return texts;
}

}  // namespace hexad::text
