#include "lib/yaml/interpolation_grammar.hpp"

#include "lib/base/error.hpp"
#include "lib/yaml/scalar.hpp"

namespace hexad::yaml {
namespace {

Expression literal(Node::Value value) {
  Expression result;
  result.value = Node(std::move(value));
  return result;
}

// Joins what a text consists of; one part alone keeps its type.
Expression join(std::vector<Expression> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  if (parts.empty()) return literal(std::string());
  Expression result;
  result.kind = Expression::Kind::text;
  result.parts = std::move(parts);
  return result;
}

// Collects characters and interpolations in turn.
class Pieces {
 public:
  void add(std::string_view text) { text_ += text; }
  void add(Expression interpolation) {
    flush();
    parts_.push_back(std::move(interpolation));
  }
  bool only_text() const { return parts_.empty(); }
  const std::string& text() const { return text_; }
  Expression take() {
    flush();
    return join(std::move(parts_));
  }

 private:
  void flush() {
    if (!text_.empty()) parts_.push_back(literal(std::exchange(text_, "")));
  }
  std::string text_;
  std::vector<Expression> parts_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression top_level() {
    Pieces pieces;
    while (!at_end()) text_step(pieces, '\0');
    return pieces.take();
  }

  Expression single_element() {
    skip_blanks();
    Expression result = element();
    skip_blanks();
    if (!at_end()) error("unexpected text after the value");
    return result;
  }

 private:
  bool at_end() const { return position_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  bool at_interpolation() const { return peek() == '$' && peek(1) == '{'; }
  void skip_blanks() {
    while (is_blank(peek())) ++position_;
  }

  [[noreturn]] void error(std::string_view what) const {
    fail(ErrorKind::config, "malformed interpolation '{}': {} at character {}", text_, what, position_ + 1);
  }

  // One step of free text. A run of n backslashes counts only before "${" (and, within quotes, before the quote):
  // odd n escapes it, and half of the others stay.
  void text_step(Pieces& pieces, char quote) {
    if (at_interpolation()) return pieces.add(interpolation());
    if (peek() != '\\') return pieces.add(text_.substr(position_++, 1));
    size_t count = 0;
    while (peek() == '\\') ++count, ++position_;
    const bool before_quote = quote && peek() == quote;
    if (!before_quote && !at_interpolation()) return pieces.add(std::string(count, '\\'));
    pieces.add(std::string(count / 2, '\\'));
    if (count % 2 == 0) return;
    pieces.add(text_.substr(position_, before_quote ? 1 : 2));
    position_ += before_quote ? 1 : 2;
  }

  // "${", then a reference or a call, up to its "}".
  Expression interpolation() {
    if (++depth_ > kDeepestNesting) error("nested too deep");
    position_ += 2;
    skip_blanks();
    Expression result;
    result.kind = Expression::Kind::reference;
    while (peek() == '.') ++result.up, ++position_;
    bool bracketed = key(result);
    while (peek() == '.' || peek() == '[') {
      if (peek() == '.') ++position_;
      bracketed |= key(result);
    }
    skip_blanks();
    if (peek() == ':') {
      if (result.up > 0 || bracketed) error("a resolver's name is words joined by dots;");
      call(result);
    }
    if (peek() != '}') error("wanted '}'");
    ++position_;
    --depth_;
    return result;
  }

  // One key of a reference: a name, [name], or an interpolation that gives it. Returns whether it was in brackets.
  bool key(Expression& reference) {
    const bool bracketed = peek() == '[';
    if (bracketed) ++position_;
    if (at_interpolation()) {
      reference.parts.push_back(interpolation());
    } else {
      const size_t begin = position_;
      while (!at_end() && std::string_view("\\{}()[]:. \t'\"").find(peek()) == std::string_view::npos) ++position_;
      if (position_ == begin) error("wanted a key");
      reference.parts.push_back(literal(std::string(text_.substr(begin, position_ - begin))));
    }
    if (bracketed) {
      if (peek() != ']') error("wanted ']'");
      ++position_;
    }
    return bracketed;
  }

  // ":" and the arguments of a resolver; what was read as a reference's keys becomes its name.
  void call(Expression& result) {
    Expression name;
    name.kind = Expression::Kind::text;
    for (Expression& part : result.parts) {
      if (!name.parts.empty()) name.parts.push_back(literal(std::string(".")));
      if (part.kind == Expression::Kind::literal && !is_name(part.value.as_string())) error("no resolver's name");
      name.parts.push_back(std::move(part));
    }
    result.kind = Expression::Kind::call;
    result.parts.clear();
    result.parts.push_back(std::move(name));
    ++position_;
    skip_blanks();
    for (Expression& argument : sequence('}')) result.parts.push_back(std::move(argument));
  }

  static bool is_name(const std::string& word) {
    const auto letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return letter(word[0]) &&
           std::ranges::all_of(word, [&](char c) { return letter(c) || c == '-' || (c >= '0' && c <= '9'); });
  }

  // Elements between commas up to `close`, which is left in place. A missing element between commas is empty text.
  std::vector<Expression> sequence(char close) {
    std::vector<Expression> result;
    if (peek() == close) return result;
    while (true) {
      result.push_back(peek() == ',' || peek() == close ? literal(std::string()) : element());
      skip_blanks();
      if (peek() == close) return result;
      if (peek() != ',') error(fmt::format("wanted ',' or '{}'", close));
      ++position_;
      skip_blanks();
    }
  }

  Expression element() {
    if (++depth_ > kDeepestNesting) error("nested too deep");
    Expression result;
    if (peek() == '[') {
      result.kind = Expression::Kind::list;
      ++position_;
      skip_blanks();
      result.parts = sequence(']');
      ++position_;
    } else if (peek() == '{') {
      result = map();
    } else if (peek() == '\'' || peek() == '"') {
      result = quoted();
    } else {
      result = primitive(true);
    }
    --depth_;
    return result;
  }

  Expression map() {
    Expression result;
    result.kind = Expression::Kind::map;
    ++position_;
    skip_blanks();
    while (peek() != '}') {
      if (!result.keys.empty()) {
        if (peek() != ',') error("wanted ',' or '}'");
        ++position_;
        skip_blanks();
      }
      const Expression key = primitive(false);
      if (!key.value.is_string()) error("a key must be text");
      result.keys.push_back(key.value.as_string());
      if (peek() != ':') error("wanted ':'");
      ++position_;
      skip_blanks();
      result.parts.push_back(element());
      skip_blanks();
    }
    ++position_;
    return result;
  }

  Expression quoted() {
    const char quote = text_[position_++];
    Pieces pieces;
    while (peek() != quote) {
      if (at_end()) error("the quotation does not end");
      text_step(pieces, quote);
    }
    ++position_;
    // Within quotes all is text, one interpolation too.
    Expression result;
    result.kind = Expression::Kind::text;
    result.parts.push_back(pieces.take());
    return result;
  }

  // An unquoted value: one word has the type it looks like, several things are joined as text.
  Expression primitive(bool is_value) {
    Pieces pieces;
    std::string raw;  // as written, to tell a number from escaped text
    while (!at_end()) {
      if (is_value && at_interpolation()) {
        if (!raw.empty()) pieces.add(raw), raw.clear();
        pieces.add(interpolation());
      } else if (peek() == '\\' && is_escapable(peek(1))) {
        if (!raw.empty()) pieces.add(raw), raw.clear();
        pieces.add(text_.substr(position_ + 1, 1));
        position_ += 2;
      } else if (is_word_char(peek()) || (is_value && peek() == ':')) {
        raw += text_[position_++];
      } else if (is_blank(peek())) {
        const size_t begin = position_;
        skip_blanks();
        const bool ends = at_end() || peek() == ',' || peek() == ']' || peek() == '}' || (!is_value && peek() == ':');
        if (!ends) raw += text_.substr(begin, position_ - begin);
      } else {
        break;
      }
    }
    if (pieces.only_text() && pieces.text().empty()) {
      if (raw.empty()) error("wanted a value");
      return literal(word_value(raw));
    }
    pieces.add(raw);
    return pieces.take();
  }

  std::string_view text_;
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

bool has_interpolation(std::string_view text) { return text.find("${") != std::string_view::npos; }

Expression parse_interpolation(std::string_view text) { return Parser(text).top_level(); }

Expression parse_element(std::string_view text) { return Parser(text).single_element(); }

}  // namespace hexad::yaml
