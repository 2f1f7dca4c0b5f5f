// Oniguruma's Ruby syntax to PCRE2's: what both read alike is copied, what they read differently is spelled out.
#include <fmt/format.h>

#include "lib/base/error.hpp"
#include "lib/text/tokenizer/pattern/regex.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

// White_Space; PCRE2's \s has U+180E besides.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{D} \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
std::string code_points(const NewerRange& range) {
  return fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<uint32_t>(range.first), static_cast<uint32_t>(range.last));
}

// Content of a class for a general category ("L", "Lo"), with the characters that an older PCRE2 does not know.
std::string category_class(std::string_view name) {
  std::string result = fmt::format("\\p{{{}}}", name);
  for (const NewerRange& range : assigned_after_unicode_14()) {
    if (!std::string_view(range.category).starts_with(name)) continue;
    result += code_points(range);
  }
  return result;
}

// Content of a class for Oniguruma's \w; PCRE2's is \p{L}\p{N}_. Outside a class it takes in six characters of Latin-1
// that are numbers but not alphabetic.
std::string word_class(bool in_class) {
  return std::string(R"(\p{Alphabetic}\p{Nl})") + (in_class ? "" : R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})") +
         category_class("L") + category_class("M") + category_class("Nd") + category_class("Pc");
}

// Content of a class for \p{Han} with the ideographs that an older PCRE2 does not know.
std::string han_class() {
  std::string result = R"(\p{Han})";
  for (const NewerRange& range : assigned_after_unicode_14()) {
    if (range.first >= 0x20000) result += code_points(range);
  }
  return result;
}

bool is_general_category(std::string_view name) {
  return !name.empty() && name.size() <= 2 && std::string_view("LMNPSZC").find(name[0]) != std::string_view::npos &&
         (name.size() == 1 || (name[1] >= 'a' && name[1] <= 'z'));
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::data, "{}: regex {}: {} not supported (at character {})", where_, in_, what, at_ + 1);
  }
  bool ahead(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  void step() {
    switch (in_[at_]) {
      case '\\': return begin_atom(), escape();
      case '[': return begin_atom(), begin_class();
      case ']':
        if (in_class_)
          out_ += ']', in_class_ = false, ++at_;
        else
          begin_atom(), out_ += "\\]", ++at_;
        return;
      case '&':
        if (in_class_ && ahead("&&")) refuse("class intersection (&&) is");
        break;
      case '(':
        if (!in_class_) return open_group();
        break;
      case ')':
        if (!in_class_) return close_group();
        break;
      case '{':
        if (!in_class_) return braces();
        break;
      case '*':
      case '+':
      case '?':
      case '|':
      case '^':
      case '$':
        if (!in_class_) return out_ += in_[at_++], void();
        break;
      default: break;
    }
    begin_atom();
    out_ += in_[at_++];
  }

  // A quantifier that follows applies to what is written from here on.
  void begin_atom() {
    const bool continues = (static_cast<uint8_t>(in_[at_]) & 0xC0) == 0x80;
    if (!in_class_ && !continues) atom_ = out_.size();
  }

  void begin_class() {
    if (in_class_) {
      const size_t end = in_.find(":]", at_);
      if (!ahead("[:") || end == std::string_view::npos) refuse("a class inside a class is");
      out_ += in_.substr(at_, end + 2 - at_);
      at_ = end + 2;
      return;
    }
    in_class_ = true;
    out_ += in_[at_++];
    if (ahead("^")) out_ += in_[at_++];
    if (ahead("]")) out_ += "\\]", ++at_;
  }

  void open_group() {
    groups_.push_back(out_.size());
    if (!ahead("(?")) return out_ += in_[at_++], void();
    size_t end = at_ + 2;
    while (end < in_.size() && (std::isalpha(static_cast<unsigned char>(in_[end])) || in_[end] == '-')) ++end;
    const std::string_view flags = in_.substr(at_ + 2, end - at_ - 2);
    if (flags.empty()) return out_ += "(?", at_ += 2, void();
    const bool alone = end < in_.size() && in_[end] == ')';
    if (flags.find_first_not_of("im-") != std::string_view::npos) refuse("a flag other than i and m is");
    if (alone && at_ > 0) refuse("a flag that is set in the middle, (?i) for example, is");
    out_ += "(?";
    for (const char flag : flags) out_ += flag == 'm' ? 's' : flag;  // Ruby's m: a dot matches newlines
    at_ = end;
  }

  void close_group() {
    out_ += in_[at_++];
    if (groups_.empty()) return;  // PCRE2 will complain
    atom_ = groups_.back();
    groups_.pop_back();
  }

  // {2,} and its kind. In Ruby's syntax {,3} is {0,3}, and a + behind repeats the whole instead of making it
  // possessive.
  void braces() {
    const size_t end = in_.find('}', at_);
    const std::string_view inner = end == std::string_view::npos ? "" : in_.substr(at_ + 1, end - at_ - 1);
    const bool interval =
        !inner.empty() && inner != "," && inner.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!interval) return begin_atom(), out_ += "\\{", ++at_, void();
    out_ += fmt::format("{{{}{}}}", inner[0] == ',' ? "0" : "", inner);
    at_ = end + 1;
    if (!ahead("+")) return;
    out_ = fmt::format("{}(?:{})+", out_.substr(0, atom_), out_.substr(atom_));
    ++at_;
  }

  void emit_class(std::string_view content, bool negative) {
    if (in_class_ && negative) refuse(fmt::format("\\{} inside a class is", in_[at_ + 1]));
    out_ += in_class_ ? std::string(content) : fmt::format("[{}{}]", negative ? "^" : "", content);
  }

  void escape() {
    if (at_ + 1 >= in_.size()) refuse("a backslash at the end is");
    const char c = in_[at_ + 1];
    switch (c) {
      case 's': emit_class(kSpaces, false); break;
      case 'S':
        if (in_class_)
          out_ += "\\S\\x{180E}";
        else
          emit_class(kSpaces, true);
        break;
      case 'w':
      case 'W': emit_class(word_class(in_class_), c == 'W'); break;
      case 'h':
      case 'H': emit_class("0-9a-fA-F", c == 'H'); break;
      case 'd':
      case 'D': emit_class(category_class("Nd"), c == 'D'); break;
      case 'p':
      case 'P': return property();
      case 'u':
        if (in_.size() < at_ + 6) refuse("\\u without four digits is");
        out_ += fmt::format("\\x{{{}}}", in_.substr(at_ + 2, 4));
        at_ += 6;
        return;
      default: out_ += in_.substr(at_, 2);
    }
    at_ += 2;
  }

  void property() {
    const size_t end = in_.find('}', at_);
    if (in_.size() < at_ + 3 || in_[at_ + 2] != '{' || end == std::string_view::npos) refuse("\\p without {...} is");
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    bool negative = in_[at_ + 1] == 'P';
    if (name.starts_with('^')) negative = !negative, name.remove_prefix(1);
    if (name == "Han" && !(in_class_ && negative)) {
      emit_class(han_class(), negative);
    } else if (!is_general_category(name)) {
      out_ += fmt::format("\\{}{{{}}}", negative ? 'P' : 'p', name);
    } else if (in_class_ && negative) {
      out_ += fmt::format("\\P{{{}}}", name);
    } else {
      emit_class(category_class(name), negative);
    }
    at_ = end + 1;
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  size_t atom_ = 0;
  bool in_class_ = false;
  std::vector<size_t> groups_;
};

}  // namespace

std::string pcre2_pattern(std::string_view oniguruma, const std::string& where) {
  return Translator(oniguruma, where).run();
}

}  // namespace hexad::text
