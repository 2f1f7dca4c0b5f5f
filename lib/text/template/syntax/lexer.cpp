#include "lib/text/template/syntax/lexer.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

// \r\n and \r become \n; one newline at the end goes.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// Longest first.
constexpr std::array<std::string_view, 25> symbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ","};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) {
      lex_data();
      if (!rest_.empty()) lex_tag();
    }
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  // Text up to the next tag, stripped as the tag's sign and lstrip_blocks say.
  void lex_data() {
    size_t tag = rest_.find('{');
    while (tag != std::string_view::npos &&
           (tag + 1 >= rest_.size() || std::string_view("{%#").find(rest_[tag + 1]) == std::string_view::npos)) {
      tag = rest_.find('{', tag + 1);
    }
    const std::string_view data = rest_.substr(0, tag);
    const bool is_print = tag != std::string_view::npos && rest_[tag + 1] == '{';
    const char sign = tag != std::string_view::npos && tag + 2 < rest_.size() ? rest_[tag + 2] : '\0';
    push_data(tag == std::string_view::npos ? data : strip(data, sign, is_print), data);
  }

  // What is left of the data before a tag that begins with `sign`.
  std::string_view strip(std::string_view data, char sign, bool is_print) const {
    if (sign == '-') return data.substr(0, data.size() - trailing_space(data));
    if (sign == '+' || is_print) return data;
    const size_t newline = data.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view indentation = data.substr(line_begin);
    const bool from_line_start = line_begin > 0 || at_line_start_;
    return from_line_start && all_space(indentation) ? data.substr(0, line_begin) : data;
  }

  void push_data(std::string_view kept, std::string_view consumed) {
    if (!kept.empty()) push(TokenKind::data, std::string(kept));
    advance(consumed.size());
  }

  void lex_tag() {
    if (rest_.starts_with("{#")) return lex_comment();
    if (lex_raw()) return;
    const bool is_print = rest_.starts_with("{{");
    push(is_print ? TokenKind::print_begin : TokenKind::block_begin, std::string(rest_.substr(0, 2)));
    advance(2);
    if (rest_.starts_with('-') || rest_.starts_with('+')) advance(1);
    lex_code(is_print);
  }

  void lex_comment() {
    const int line = line_;
    const size_t begin = rest_.size() > 2 && (rest_[2] == '-' || rest_[2] == '+') ? 3 : 2;
    const size_t close = rest_.find("#}", begin);
    if (close == std::string_view::npos) throw SyntaxFault(line, "a comment {# is not closed by #}");
    const char sign = close > begin ? rest_[close - 1] : '\0';
    advance(close + 2);
    trim_after_block(sign);
  }

  // After the end of a block or comment: `-` drops white space, `+` nothing, otherwise one newline (trim_blocks).
  void trim_after_block(char sign) {
    at_line_start_ = false;
    if (sign == '-') {
      advance(leading_space(rest_));
    } else if (sign != '+' && rest_.starts_with('\n')) {
      advance(1);
    }
  }

  // "{%- name -%}" at the start of `text`: its length and signs; nullopt when it is another tag.
  struct Tag {
    size_t size;
    char begin_sign, end_sign;
  };
  static std::optional<Tag> match_tag(std::string_view text, std::string_view name) {
    Tag tag{2, '\0', '\0'};
    const auto skip_space = [&] { tag.size += leading_space(text.substr(tag.size)); };
    if (tag.size < text.size() && (text[tag.size] == '-' || text[tag.size] == '+')) tag.begin_sign = text[tag.size++];
    skip_space();
    if (!text.substr(tag.size).starts_with(name)) return std::nullopt;
    tag.size += name.size();
    skip_space();
    if (tag.size < text.size() && (text[tag.size] == '-' || text[tag.size] == '+')) tag.end_sign = text[tag.size++];
    if (!text.substr(tag.size).starts_with("%}")) return std::nullopt;
    tag.size += 2;
    return tag;
  }

  bool lex_raw() {
    if (!rest_.starts_with("{%")) return false;
    const std::optional<Tag> open = match_tag(rest_, "raw");
    if (!open || open->end_sign == '+') return false;
    const int line = line_;
    advance(open->size);
    at_line_start_ = false;
    if (open->end_sign == '-') advance(leading_space(rest_));
    for (size_t at = rest_.find("{%"); at != std::string_view::npos; at = rest_.find("{%", at + 2)) {
      const std::optional<Tag> close = match_tag(rest_.substr(at), "endraw");
      if (!close) continue;
      push_data(strip(rest_.substr(0, at), close->begin_sign, false), rest_.substr(0, at));
      advance(close->size);
      trim_after_block(close->end_sign);
      return true;
    }
    throw SyntaxFault(line, "{% raw %} is not closed by {% endraw %}");
  }

  void lex_code(bool is_print) {
    const std::string_view close = is_print ? "}}" : "%}";
    const int line = line_;
    for (;;) {
      advance(leading_space(rest_));
      if (rest_.empty()) {
        throw SyntaxFault(line, fmt::format("{} is not closed by {}", is_print ? "{{" : "{%", close));
      }
      if (brackets_.empty()) {
        const bool signed_end =
            (rest_[0] == '-' || (rest_[0] == '+' && !is_print)) && rest_.substr(1).starts_with(close);
        if (signed_end || rest_.starts_with(close)) return end_code(is_print, signed_end ? rest_[0] : '\0');
      }
      lex_token();
    }
  }

  void end_code(bool is_print, char sign) {
    push(is_print ? TokenKind::print_end : TokenKind::block_end, is_print ? "}}" : "%}");
    advance(sign ? 3 : 2);
    if (!is_print) return trim_after_block(sign);
    at_line_start_ = false;
    if (sign == '-') advance(leading_space(rest_));
  }

  void lex_token() {
    const char c = rest_[0];
    if (is_decimal(c)) return lex_number();
    if (is_name_start(c)) {
      size_t size = 1;
      while (size < rest_.size() && (is_name_start(rest_[size]) || is_decimal(rest_[size]))) ++size;
      return push_and_advance(TokenKind::name, size);
    }
    if (c == '"' || c == '\'') return lex_string();
    for (std::string_view symbol : symbols) {
      if (!rest_.starts_with(symbol)) continue;
      balance(symbol[0]);
      return push_and_advance(TokenKind::symbol, symbol.size());
    }
    size_t size = 0;
    next_code_point(rest_, size);
    throw SyntaxFault(line_, fmt::format("unexpected character '{}'", rest_.substr(0, size)));
  }

  void balance(char symbol) {
    if (symbol == '(') brackets_ += ')';
    if (symbol == '[') brackets_ += ']';
    if (symbol == '{') brackets_ += '}';
    if (symbol != ')' && symbol != ']' && symbol != '}') return;
    if (brackets_.empty()) throw SyntaxFault(line_, fmt::format("unexpected '{}'", symbol));
    if (brackets_.back() != symbol)
      throw SyntaxFault(line_, fmt::format("unexpected '{}', expected '{}'", symbol, brackets_.back()));
    brackets_.pop_back();
  }

  // Digits, with single underscores between them, from `at` on; returns where they end.
  size_t digits_end(size_t at) const {
    while (at < rest_.size() && (is_decimal(rest_[at]) || (rest_[at] == '_' && at > 0 && is_decimal(rest_[at - 1]) &&
                                                           at + 1 < rest_.size() && is_decimal(rest_[at + 1]))))
      ++at;
    return at;
  }

  void lex_number() {
    if (rest_.size() > 2 && rest_[0] == '0' && std::string_view("xXoObB").find(rest_[1]) != std::string_view::npos) {
      size_t size = 2;
      while (size < rest_.size() && (is_decimal(rest_[size]) || (is_name_start(rest_[size])))) ++size;
      return push_and_advance(TokenKind::integer, size);
    }
    size_t size = digits_end(0);
    bool real = false;
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == TokenKind::symbol && tokens_.back().text == ".";
    if (!after_dot && size + 1 < rest_.size() && rest_[size] == '.' && is_decimal(rest_[size + 1])) {
      size = digits_end(size + 1), real = true;
    }
    if (!after_dot && size < rest_.size() && (rest_[size] | 0x20) == 'e') {
      size_t exponent = size + 1;
      if (exponent < rest_.size() && (rest_[exponent] == '+' || rest_[exponent] == '-')) ++exponent;
      if (exponent < rest_.size() && is_decimal(rest_[exponent])) size = digits_end(exponent), real = true;
    }
    push_and_advance(real ? TokenKind::real : TokenKind::integer, size);
  }

  void lex_string() {
    const char quote = rest_[0];
    size_t close = 1;
    while (close < rest_.size() && rest_[close] != quote) close += rest_[close] == '\\' ? 2 : 1;
    if (close >= rest_.size())
      throw SyntaxFault(line_, fmt::format("a string that begins with {} is not closed", quote));
    try {
      push(TokenKind::text, unescape(rest_.substr(1, close - 1)));
    } catch (const Fault& error) {
      throw SyntaxFault(line_, error.what());
    }
    advance(close + 1);
  }

  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void push_and_advance(TokenKind kind, size_t size) {
    push(kind, std::string(rest_.substr(0, size)));
    advance(size);
  }
  void advance(size_t size) {
    if (size == 0) return;
    line_ += static_cast<int>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
    at_line_start_ = rest_[size - 1] == '\n';
    rest_.remove_prefix(size);
  }

  const std::string source_;
  std::string_view rest_;
  std::string brackets_;  // closing ones that are awaited
  std::vector<Token> tokens_;
  int line_ = 1;
  bool at_line_start_ = true;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace hexad::text::jinja
