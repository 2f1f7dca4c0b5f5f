// Unicode normalization forms over UTF-8, of the Unicode version that `tokenizers` normalizes by (11.0).
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace hexad::text {

class UnicodeNormalizer {
 public:
  enum class Form { nfc, nfd, nfkc, nfkd };

  // Built on the first call, never destroyed. Any thread.
  static const UnicodeNormalizer& get(Form form);

  // True when `text` surely is in this form already; a cheap look that may say false for such a text too.
  bool leaves_alone(std::string_view text) const;

  // Appends the form of `text`, which is valid UTF-8.
  void append(std::string_view text, std::string& out) const;

 private:
  struct Icu;
  explicit UnicodeNormalizer(Form form);
  std::shared_ptr<const Icu> icu_;
};

}  // namespace hexad::text
