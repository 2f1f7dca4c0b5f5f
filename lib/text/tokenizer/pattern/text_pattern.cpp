#include "lib/text/tokenizer/pattern/text_pattern.hpp"

namespace hexad::text {

TextPattern::TextPattern(const Component& owner) {
  const Component pattern = owner.child("pattern");
  if (pattern.has("String")) {
    literal_ = pattern.text("String");
    if (literal_.empty()) regex_.emplace("(?:)", pattern.where());
  } else if (pattern.has("Regex")) {
    regex_source_ = pattern.text("Regex");
    regex_.emplace(regex_source_, pattern.where());
  } else {
    pattern.refuse("wanted \"String\" or \"Regex\"");
  }
}

void TextPattern::find_all(std::string_view text, std::vector<Regex::Match>& matches) const {
  if (regex_) return regex_->find_all(text, matches);
  matches.clear();
  for (size_t at = 0; (at = text.find(literal_, at)) != std::string_view::npos; at += literal_.size()) {
    matches.push_back({at, at + literal_.size()});
  }
}

}  // namespace hexad::text
