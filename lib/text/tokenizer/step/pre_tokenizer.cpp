#include "lib/text/tokenizer/step/pre_tokenizer.hpp"

#include <algorithm>

#include "lib/text/tokenizer/step/byte_level.hpp"
#include "lib/text/tokenizer/step/split_step.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

constexpr std::string_view kPreTokenizers =
    "ByteLevel, Split, Metaspace, Digits, Punctuation, WhitespaceSplit, Sequence";

// A step that rewrites every piece; `rewrite(text, from_start, out)` appends the new text of a piece and returns its
// new from_start.
template <typename Rewrite>
void rewrite_pieces(Pieces& pieces, Rewrite rewrite) {
  std::string& out = pieces.buffers[pieces.next_buffer];
  pieces.next_buffer ^= 1;
  out.clear();
  for (Piece& piece : pieces.list) {
    const size_t begin = out.size();
    piece.from_start = rewrite(pieces.view(piece), piece.from_start, out);
    piece.begin = begin;
    piece.size = out.size() - begin;
  }
  pieces.text = out;
}

class ByteCharsStep final : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    rewrite_pieces(pieces, [](std::string_view text, size_t from_start, std::string& out) {
      const size_t begin = out.size();
      append_byte_chars(text.substr(0, from_start), out);
      const size_t result = out.size() - begin;
      append_byte_chars(text.substr(from_start), out);
      return result;
    });
  }
};

// ByteLevel's add_prefix_space.
class PrefixSpace final : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    rewrite_pieces(pieces, [](std::string_view text, size_t from_start, std::string& out) {
      const bool add = !text.starts_with(' ');
      if (add) out += ' ';
      out += text;
      return from_start > 0 && add ? from_start + 1 : from_start;
    });
  }
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(const Component& component)
      : mark_(component.text("replacement")), split_(component.boolean_or("split", true)) {
    if (mark_.empty() || char_size(mark_[0]) != mark_.size()) {
      component.refuse("\"replacement\" wants one character, got \"{}\"", mark_);
    }
    const std::string scheme = component.text_or("prepend_scheme", "always");
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      component.refuse("\"prepend_scheme\" wants always, first or never, got \"{}\"", scheme);
    }
    const bool prefix = component.boolean_or("add_prefix_space", true);  // the key's old name
    if (!prefix && component.has("prepend_scheme") && scheme != "never") {
      component.refuse("\"add_prefix_space\": false contradicts \"prepend_scheme\": \"{}\"", scheme);
    }
    always_ = prefix && scheme == "always";
    first_ = prefix && scheme == "first";
  }

  void apply(Pieces& pieces) const override {
    rewrite_pieces(pieces, [this](std::string_view text, size_t from_start, std::string& out) {
      return rewrite(text, from_start, out);
    });
    if (!split_) return;
    for (const Piece& piece : pieces.list) {
      const std::string_view text = pieces.view(piece);
      pieces.matches.clear();
      for (size_t at = 0; (at = text.find(mark_, at)) != std::string_view::npos; at += mark_.size()) {
        pieces.matches.push_back({at, at + mark_.size()});
      }
      cut(pieces, piece, Delimiter::merged_with_next, false);
    }
    pieces.finish_step();
  }

 private:
  size_t rewrite(std::string_view text, size_t from_start, std::string& out) const {
    const size_t begin = out.size();
    const bool marked = text.starts_with(' ') || text.starts_with(mark_);
    if (!marked && (always_ || (first_ && from_start > 0))) out += mark_;
    size_t result = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (i == from_start) result = out.size() - begin;
      if (text[i] == ' ')
        out += mark_;
      else
        out += text[i];
    }
    if (from_start >= text.size()) result = out.size() - begin;
    return from_start > 0 ? result : 0;
  }

  std::string mark_;
  bool split_;
  bool always_ = false, first_ = false;
};

void add_steps(const Component& component, PreTokenizerChain& chain) {
  auto& steps = chain.steps;
  if (chain.ends_in_byte_chars) steps.push_back(make_byte_chars_step());  // something follows it after all
  chain.ends_in_byte_chars = false;
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const Component& part : component.children("pretokenizers")) add_steps(part, chain);
  } else if (type == "ByteLevel") {
    if (component.boolean_or("add_prefix_space", true)) steps.push_back(std::make_unique<PrefixSpace>());
    if (component.boolean_or("use_regex", true)) steps.push_back(make_gpt2_split());
    chain.ends_in_byte_chars = true;
  } else if (type == "Split") {
    steps.push_back(make_split(component));
  } else if (type == "Metaspace") {
    steps.push_back(std::make_unique<Metaspace>(component));
  } else if (type == "Digits") {
    const bool each = component.boolean_or("individual_digits", false);
    steps.push_back(make_class_split(kNumeric, false, each ? Delimiter::isolated : Delimiter::contiguous));
  } else if (type == "Punctuation") {
    steps.push_back(make_class_split(kPunctuation, true, parse_delimiter(component, "behavior")));
  } else if (type == "WhitespaceSplit") {
    steps.push_back(make_class_split(kSpace, false, Delimiter::removed));
  } else {
    component.refuse_type(kPreTokenizers);
  }
}

}  // namespace

void Pieces::reset(std::string_view all, size_t from_start) {
  text = all;
  list.clear();
  next.clear();
  if (!all.empty()) list.push_back({0, all.size(), from_start});
}

void Pieces::add_part(const Piece& piece, size_t begin, size_t end) {
  if (begin >= end) return;
  const size_t from_start = piece.from_start > begin ? std::min(piece.from_start, end) - begin : 0;
  next.push_back({piece.begin + begin, end - begin, from_start});
}

PreTokenizerChain make_pre_tokenizer(const Component& component) {
  PreTokenizerChain chain;
  add_steps(component, chain);
  return chain;
}

std::unique_ptr<PreTokenizer> make_byte_chars_step() { return std::make_unique<ByteCharsStep>(); }

}  // namespace hexad::text
