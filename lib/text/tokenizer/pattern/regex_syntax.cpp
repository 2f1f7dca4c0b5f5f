// Oniguruma's Ruby syntax to PCRE2's: what both read alike is copied, what they read differently is spelled out.
#include <fmt/format.h>
#include <unicode/uchar.h>

#include <utility>

#include "lib/base/error.hpp"
#include "lib/text/tokenizer/pattern/class_pattern.hpp"
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
  std::string result = R"(\p{sc:Han})";
  for (const NewerRange& range : assigned_after_unicode_14()) {
    if (range.first >= 0x20000) result += code_points(range);
  }
  return result;
}

// To PCRE2 the bare name of a script is also what is used in that script, such as U+3002 in Han.
bool is_script(std::string_view name) {
  return u_getPropertyValueEnum(UCHAR_SCRIPT, std::string(name).c_str()) != UCHAR_INVALID_CODE;
}

bool is_general_category(std::string_view name) {
  return !name.empty() && name.size() <= 2 && std::string_view("LMNPSZC").find(name[0]) != std::string_view::npos &&
         (name.size() == 1 || (name[1] >= 'a' && name[1] <= 'z'));
}

bool is_word(std::string_view name) { return name == "Word" || name == "word"; }

// "L" of "Letter", "Lu" of "uppercase_letter": Oniguruma knows categories by their long names too, PCRE2 does not.
// Empty for any other name. (ICU looks past case, blanks and underscores, as Oniguruma does.)
std::string_view short_category(std::string_view name) {
  if (is_general_category(name)) return name;
  const int32_t mask = u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, std::string(name).c_str());
  if (name.size() <= 2 || mask == UCHAR_INVALID_CODE) return "";
  const char* found = u_getPropertyValueName(UCHAR_GENERAL_CATEGORY_MASK, mask, U_SHORT_PROPERTY_NAME);
  return found && is_general_category(found) ? found : "";
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) step();
    if (in_class()) refuse("a class without its ] is");
    return std::move(out_);
  }

 private:
  // What stands before a place of a class.
  enum class Before { nothing, character, set, nested_class };

  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::data, "{}: regex {}: {} not supported (at character {})", where_, in_, what, at_ + 1);
  }
  bool ahead(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  bool in_class() const { return class_.is_open(); }

  void emit(std::string_view text) {
    if (in_class())
      class_.add(text);
    else
      out_ += text;
  }

  void step() {
    if (in_class()) return class_step();
    switch (in_[at_]) {
      case '\\': return begin_atom(), escape();
      case '[': return begin_atom(), open_class();
      case ']': return begin_atom(), out_ += "\\]", ++at_, void();
      case '(': return open_group();
      case ')': return close_group();
      case '{': return braces();
      case '*':
      case '+':
      case '?':
      case '|':
      case '^':
      case '$': return out_ += in_[at_++], void();
      default: break;
    }
    begin_atom();
    out_ += in_[at_++];
  }

  // A quantifier that follows applies to what is written from here on.
  void begin_atom() {
    const bool continues = (static_cast<uint8_t>(in_[at_]) & 0xC0) == 0x80;
    if (!continues) atom_ = out_.size();
  }

  void class_step() {
    const Before before = std::exchange(before_, Before::character);
    if (in_[at_] == '\\') return escape();
    if (in_[at_] == '[') return open_class();
    if (in_[at_] == '-') return hyphen(before);
    if (in_[at_] == ']') {
      out_ += class_.close();
      before_ = Before::nested_class;
      ++at_;
    } else if (ahead("&&")) {
      class_.intersect();
      before_ = Before::nothing;
      at_ += 2;
    } else if (in_[at_] == '^') {
      class_.add("\\^");  // negates right behind its [ alone, and a side of && may begin with it
      ++at_;
    } else {
      class_.add(in_.substr(at_++, 1));
    }
  }

  // Of a range between two characters, or itself at an end of a class and behind one inside it.
  void hyphen(Before before) {
    const bool last = at_ + 1 < in_.size() && in_[at_ + 1] == ']';
    if (!last && before == Before::set) refuse("a range that begins with a set of characters is");
    if (!last && before == Before::character && is_set_ahead(at_ + 1))
      refuse("a range that ends with a set of characters is");
    class_.add(last || before != Before::character ? "\\-" : "-");
    ++at_;
  }

  // Whether a class or an escape such as \s stands at a place of a class.
  bool is_set_ahead(size_t at) const {
    if (at >= in_.size()) return false;
    if (in_[at] == '[') return true;
    return in_[at] == '\\' && at + 1 < in_.size() && std::string_view("sSwWdDhHpP").find(in_[at + 1]) != in_.npos;
  }

  void open_class() {
    const size_t end = in_.find(":]", at_);
    if (in_class() && ahead("[:") && end != std::string_view::npos) {
      class_.add(in_.substr(at_, end + 2 - at_));
      at_ = end + 2;
      before_ = Before::set;
      return;
    }
    const bool negative = in_.substr(at_ + 1).starts_with('^');
    class_.open(negative);
    before_ = Before::nothing;
    at_ += negative ? 2 : 1;
    if (ahead("]")) class_.add("\\]"), before_ = Before::character, ++at_;
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
    before_ = Before::set;
    if (in_class() && negative)
      class_.add_others(content);
    else
      emit(in_class() ? std::string(content) : fmt::format("[{}{}]", negative ? "^" : "", content));
  }

  void escape() {
    if (at_ + 1 >= in_.size()) refuse("a backslash at the end is");
    const char c = in_[at_ + 1];
    switch (c) {
      case 's': emit_class(kSpaces, false); break;
      case 'S': emit_class(kSpaces, true); break;
      case 'w':
      case 'W': emit_class(word_class(in_class()), c == 'W'); break;
      case 'h':
      case 'H': emit_class("0-9a-fA-F", c == 'H'); break;
      case 'd':
      case 'D': emit_class(category_class("Nd"), c == 'D'); break;
      case 'p':
      case 'P': return property();
      case 'u':
        if (in_.size() < at_ + 6) refuse("\\u without four digits is");
        emit(fmt::format("\\x{{{}}}", in_.substr(at_ + 2, 4)));
        at_ += 6;
        return;
      default: emit(in_.substr(at_, 2));
    }
    at_ += 2;
  }

  void property() {
    const size_t end = in_.find('}', at_);
    if (in_.size() < at_ + 3 || in_[at_ + 2] != '{' || end == std::string_view::npos) refuse("\\p without {...} is");
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    bool negative = in_[at_ + 1] == 'P';
    if (name.starts_with('^')) negative = !negative, name.remove_prefix(1);
    if (name == "Han") {
      emit_class(han_class(), negative);
    } else if (const std::string_view category = short_category(name); !category.empty()) {
      emit_class(category_class(category), negative);
    } else if (is_word(name)) {
      emit_class(word_class(true), negative);
    } else {
      emit(fmt::format("\\{}{{{}{}}}", negative ? 'P' : 'p', is_script(name) ? "sc:" : "", name));
      before_ = Before::set;
    }
    at_ = end + 1;
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  size_t atom_ = 0;
  ClassPattern class_;
  Before before_ = Before::nothing;
  std::vector<size_t> groups_;
};

}  // namespace

std::string pcre2_pattern(std::string_view oniguruma, const std::string& where) {
  return Translator(oniguruma, where).run();
}

}  // namespace hexad::text
