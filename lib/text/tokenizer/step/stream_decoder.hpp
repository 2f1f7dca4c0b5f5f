// Text of a sequence chunk by chunk while its ids arrive, equal to DecodeStream of the `tokenizers` library.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/text/tokenizer/tokenizer.hpp"

namespace hexad::text {

// One per sequence; not for use from two threads at once.
class StreamDecoder {
 public:
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens);

  // Takes the next id. Returns the text that is certain now, or nothing while an incomplete character (or a skipped
  // special token) is all there is: bytes that never complete a character are never returned. Throws Error(data) where
  // DecodeStream raises "Invalid prefix": byte-fallback decoding of a broken byte sequence changed text already
  // returned. After that only `reset` and `push_or_restart` are of use.
  std::optional<std::string> push(int32_t id);

  // As `push`, but a broken byte sequence restarts the stream at this id instead of throwing.
  std::optional<std::string> push_or_restart(int32_t id);

  // Forgets everything pushed.
  void reset();

 private:
  bool step(int32_t id, std::optional<std::string>& chunk);

  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  std::vector<int32_t> ids_;  // prefix_count_ ids that are kept as context, then the undecided rest
  std::string prefix_;        // text of the context
  size_t prefix_count_ = 0;
};

}  // namespace hexad::text
