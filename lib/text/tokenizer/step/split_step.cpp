#include "lib/text/tokenizer/step/split_step.hpp"

#include <algorithm>

#include "lib/text/tokenizer/pattern/word_pattern.hpp"
#include "lib/text/tokenizer/step/component.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

// The piece as alternating stretches, delimiters marked, that cover it.
struct Stretch {
  size_t begin, end;
  bool delimiter;
};

void list_stretches(const std::vector<Regex::Match>& matches, size_t size, bool invert, std::vector<Stretch>& out) {
  out.clear();
  size_t from = 0;
  for (const Regex::Match& match : matches) {
    if (match.begin > from) out.push_back({from, match.begin, invert});
    out.push_back({match.begin, match.end, !invert});
    from = match.end;
  }
  if (from < size) out.push_back({from, size, invert});
}

// A delimiter joins the stretch before it in the given direction, unless that one is a delimiter too.
template <typename Iterator, typename Join>
void merge_stretches(Iterator first, Iterator last, std::vector<Stretch>& out, Join join) {
  bool previous = false;
  for (; first != last; ++first) {
    if (first->delimiter && !previous && !out.empty())
      join(out.back(), *first);
    else
      out.push_back(*first);
    previous = first->delimiter;
  }
}

void join_equal(const std::vector<Stretch>& in, std::vector<Stretch>& out) {
  bool previous = false;
  for (const Stretch& stretch : in) {
    if (stretch.delimiter == previous && !out.empty())
      out.back().end = stretch.end;
    else
      out.push_back(stretch);
    previous = stretch.delimiter;
  }
}

class Split final : public PreTokenizer {
 public:
  explicit Split(const Component& component)
      : pattern_(component),
        delimiter_(parse_delimiter(component, "behavior")),
        invert_(component.boolean_or("invert", false)) {}

  void apply(Pieces& pieces) const override {
    for (const Piece& piece : pieces.list) {
      pattern_.find_all(pieces.view(piece), pieces.matches);
      cut(pieces, piece, delimiter_, invert_);
    }
    pieces.finish_step();
  }

 private:
  TextPattern pattern_;
  Delimiter delimiter_;
  bool invert_;
};

class WordSplit final : public PreTokenizer {
 public:
  explicit WordSplit(WordPattern pattern) : pattern_(pattern) {}

  void apply(Pieces& pieces) const override {
    for (const Piece& piece : pieces.list) {
      pieces.ends.clear();
      pattern_.split(pieces.view(piece), pieces.ends);
      size_t begin = 0;
      for (const size_t end : pieces.ends) pieces.add_part(piece, begin, end), begin = end;
    }
    pieces.finish_step();
  }

 private:
  WordPattern pattern_;
};

class ClassSplit final : public PreTokenizer {
 public:
  ClassSplit(uint8_t classes, bool ascii_symbols, Delimiter delimiter)
      : classes_(classes), ascii_symbols_(ascii_symbols), delimiter_(delimiter) {}

  void apply(Pieces& pieces) const override {
    const uint8_t* table = char_classes();
    for (const Piece& piece : pieces.list) {
      const std::string_view text = pieces.view(piece);
      pieces.matches.clear();
      for (const char* at = text.data(); at < text.data() + text.size();) {
        const size_t begin = static_cast<size_t>(at - text.data());
        const char32_t c = next_char(at);
        if (!(table[c] & classes_) && !(ascii_symbols_ && is_ascii_symbol(c))) continue;
        pieces.matches.push_back({begin, static_cast<size_t>(at - text.data())});
      }
      if (pieces.matches.empty())
        pieces.add_part(piece, 0, piece.size);
      else
        cut(pieces, piece, delimiter_, false);
    }
    pieces.finish_step();
  }

 private:
  static bool is_ascii_symbol(char32_t c) {
    return c < 0x80 && std::string_view("$+<=>^`|~").find(static_cast<char>(c)) != std::string_view::npos;
  }

  uint8_t classes_;
  bool ascii_symbols_;
  Delimiter delimiter_;
};

}  // namespace

Delimiter parse_delimiter(const Component& component, const char* key) {
  const std::string name = component.text_or(key, "Isolated");
  if (name == "Removed") return Delimiter::removed;
  if (name == "Isolated") return Delimiter::isolated;
  if (name == "MergedWithPrevious") return Delimiter::merged_with_previous;
  if (name == "MergedWithNext") return Delimiter::merged_with_next;
  if (name == "Contiguous") return Delimiter::contiguous;
  component.refuse("{} \"{}\" is unknown; wanted Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
                   key, name);
}

void cut(Pieces& pieces, const Piece& piece, Delimiter delimiter, bool invert) {
  thread_local std::vector<Stretch> stretches, merged;
  list_stretches(pieces.matches, piece.size, invert, stretches);
  merged.clear();
  switch (delimiter) {
    case Delimiter::removed:
    case Delimiter::isolated: merged.swap(stretches); break;
    case Delimiter::contiguous: join_equal(stretches, merged); break;
    case Delimiter::merged_with_previous:
      merge_stretches(stretches.begin(), stretches.end(), merged,
                      [](Stretch& before, const Stretch& mark) { before.end = mark.end; });
      break;
    case Delimiter::merged_with_next:
      merge_stretches(stretches.rbegin(), stretches.rend(), merged,
                      [](Stretch& after, const Stretch& mark) { after.begin = mark.begin; });
      std::reverse(merged.begin(), merged.end());
      break;
  }
  for (const Stretch& stretch : merged) {
    if (delimiter == Delimiter::removed && stretch.delimiter) continue;
    pieces.add_part(piece, stretch.begin, stretch.end);
  }
}

std::unique_ptr<PreTokenizer> make_split(const Component& component) {
  const Component pattern = component.child("pattern");
  const Delimiter delimiter = parse_delimiter(component, "behavior");
  const bool invert = component.boolean_or("invert", false);
  // The known patterns match every character, so that keeping the matches and cutting at them is the same.
  const bool keeps_matches = invert ? delimiter == Delimiter::removed : delimiter == Delimiter::isolated;
  if (keeps_matches && pattern.has("Regex")) {
    if (const auto words = WordPattern::recognize(pattern.text("Regex"))) return std::make_unique<WordSplit>(*words);
  }
  return std::make_unique<Split>(component);
}

std::unique_ptr<PreTokenizer> make_gpt2_split() { return std::make_unique<WordSplit>(WordPattern::gpt2()); }

std::unique_ptr<PreTokenizer> make_class_split(uint8_t classes, bool ascii_symbols, Delimiter delimiter) {
  return std::make_unique<ClassSplit>(classes, ascii_symbols, delimiter);
}

}  // namespace hexad::text
