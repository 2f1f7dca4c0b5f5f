// The regexes that split text into words in most byte-level tokenizers, matched by hand instead of by PCRE2.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace hexad::text {

class WordPattern {
 public:
  // GPT-2's regex, which the ByteLevel pre-tokenizer uses.
  static WordPattern gpt2() { return WordPattern(true, 0); }

  // Set when `regex` is the one of GPT-2, of Llama 3 or of Qwen 2 to 3.
  static std::optional<WordPattern> recognize(std::string_view regex);

  // Appends the byte offset of the end of every word of `text`, which is valid UTF-8. The words cover the text.
  void split(std::string_view text, std::vector<size_t>& ends) const;

 private:
  WordPattern(bool gpt2, size_t digits) : gpt2_(gpt2), digits_(digits) {}

  bool gpt2_;
  size_t digits_;  // most digits in a word (Llama 3 and Qwen)
};

}  // namespace hexad::text
