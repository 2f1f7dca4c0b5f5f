#include "lib/yaml/file.hpp"

#include <cstdint>
#include <string_view>

#include "lib/base/error.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::yaml {
namespace {

// Follows just enough of YAML's lexical structure to know what a character belongs to.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void run() {
    check_characters();
    while (position_ < text_.size()) {
      const char c = text_[position_];
      if (c == '\n') {
        next_line();
      } else {
        step(c);
      }
    }
  }

 private:
  [[noreturn]] void error(std::string_view what) const { error_at(position_, what); }

  [[noreturn]] void error_at(size_t position, std::string_view what) const {
    const std::string_view before = text_.substr(0, position);
    const size_t line = std::ranges::count(before, '\n') + 1;
    const size_t begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    fail(ErrorKind::config, "{}:{}:{}: {}", name_, line, position - begin + 1, what);
  }

  // What PyYAML takes, wherever it stands: UTF-8, of control characters the tab, line ends and U+0085, no U+FFFE and
  // U+FFFF.
  void check_characters() const {
    const size_t valid = utf8_prefix(text_);
    for (const char* at = text_.data(); at != text_.data() + valid;) {
      const auto position = static_cast<size_t>(at - text_.data());
      const char32_t c = next_char(at);
      const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7f && c < 0xa0 && c != 0x85);
      if (control || c == 0xfffe || c == 0xffff) error_at(position, "a control character");
    }
    if (valid < text_.size()) error_at(valid, "a byte that is not UTF-8");
  }

  void next_line() {
    ++position_;
    token_start_ = true;
    line_begin_ = position_;
  }

  void step(char c) {
    if (c == '\t') error("a tab cannot stand here; use spaces, or quote the text");
    const bool after_blank = position_ == line_begin_ || text_[position_ - 1] == ' ';
    if (c == '#' && after_blank) return skip_line();
    if (token_start_ && (c == '\'' || c == '"')) return skip_quoted(c);
    if (token_start_ && flow_depth_ == 0 && (c == '|' || c == '>') && ends_line_with_block_header())
      return skip_block();
    structure(c);
    ++position_;
  }

  // Brackets and commas, and whether the next character can begin a token.
  void structure(char c) {
    if (c == ' ' || c == '\r') return;
    const bool opens = (c == '[' || c == '{') && (flow_depth_ > 0 || token_start_);
    if (opens) ++flow_depth_;
    if ((c == ']' || c == '}') && flow_depth_ > 0) --flow_depth_;
    const bool comma = c == ',' && flow_depth_ > 0;
    if (comma && (last_ == '[' || last_ == '{' || last_ == ',')) error("an element is missing before ','");
    const bool next_is_blank =
        position_ + 1 >= text_.size() || text_[position_ + 1] == ' ' || text_[position_ + 1] == '\n';
    token_start_ = opens || comma || ((c == '-' || c == '?' || c == ':') && next_is_blank);
    last_ = opens || comma ? c : 'x';
  }

  void skip_line() {
    const size_t end = text_.find('\n', position_);
    position_ = end == std::string_view::npos ? text_.size() : end;
  }

  void skip_quoted(char quote) {
    const size_t begin = position_++;
    while (position_ < text_.size() && text_[position_] != quote) {
      position_ += quote == '"' && text_[position_] == '\\' ? 2 : 1;
    }
    if (position_ >= text_.size()) error_at(begin, "the quotation does not end");
    ++position_;
    token_start_ = false;
    last_ = 'x';
  }

  // "|", ">2-" and the like, up to the end of the line.
  bool ends_line_with_block_header() const {
    size_t at = position_ + 1;
    while (at < text_.size() && std::string_view("+-0123456789").find(text_[at]) != std::string_view::npos) ++at;
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\r')) ++at;
    return at >= text_.size() || text_[at] == '\n' || text_[at] == '#';
  }

  // The lines below a block header that are blank or indented deeper than its line.
  void skip_block() {
    const size_t indent = text_.find_first_not_of(' ', line_begin_) - line_begin_;
    skip_line();
    while (position_ < text_.size()) {
      next_line();
      const size_t first = std::min(text_.find_first_not_of(' ', position_), text_.size());
      const bool blank = first == text_.size() || text_[first] == '\n' || text_[first] == '\r';
      if (!blank && first - line_begin_ <= indent) return;
      skip_line();
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t position_ = 0;
  size_t line_begin_ = 0;
  int flow_depth_ = 0;
  bool token_start_ = true;
  char last_ = 'x';
};

}  // namespace

void check_strict_yaml(const std::string& text, const std::string& name) { Scanner(text, name).run(); }

}  // namespace hexad::yaml
