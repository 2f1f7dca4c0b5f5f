#include "expression.hpp"

#include <numeric>
#include <string>

namespace countdown {
namespace {

constexpr int kDeepest = 64;
constexpr int64_t kLongestText = 512;

struct Fraction {
  int64_t over = 0, under = 1;
};

// Thrown inside this file only: the text is no expression with a value.
struct NoValue {};

int64_t checked(bool overflow, int64_t value) {
  if (overflow) throw NoValue{};
  return value;
}
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &result);
  return checked(overflow, result);
}
int64_t sum(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = __builtin_add_overflow(a, b, &result);
  return checked(overflow, result);
}

Fraction reduced(int64_t over, int64_t under) {
  if (under == 0 || over == INT64_MIN || under == INT64_MIN) throw NoValue{};
  const int64_t divisor = std::gcd(over, under) * (under < 0 ? -1 : 1);
  return {over / divisor, under / divisor};
}

Fraction apply(char sign, Fraction a, Fraction b) {
  if (sign == '*') return reduced(product(a.over, b.over), product(a.under, b.under));
  if (sign == '/') return reduced(product(a.over, b.under), product(a.under, b.over));
  const int64_t right = product(b.over, a.under);
  return reduced(sum(product(a.over, b.under), sign == '+' ? right : product(-1, right)), product(a.under, b.under));
}

// Recursive descent: sum = term {+- term}, term = factor {*/ factor}, factor = number | ( sum ) | - factor.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Fraction whole() {
    const Fraction value = sum_of_terms(0);
    if (next(); at_ != text_.size()) throw NoValue{};
    return value;
  }
  std::vector<int64_t> numbers;

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  // The next character that is no blank.
  char next() {
    while (here() == ' ') ++at_;
    return here();
  }
  bool take(char wanted) {
    const bool there = next() == wanted;
    at_ += there;
    return there;
  }

  Fraction sum_of_terms(int depth) {
    Fraction value = term(depth);
    for (char sign = next(); sign == '+' || sign == '-'; sign = next()) {
      ++at_;
      value = apply(sign, value, term(depth));
    }
    return value;
  }
  Fraction term(int depth) {
    Fraction value = factor(depth);
    for (char sign = next(); sign == '*' || sign == '/'; sign = next()) {
      ++at_;
      value = apply(sign, value, factor(depth));
    }
    return value;
  }
  Fraction factor(int depth) {
    if (depth > kDeepest) throw NoValue{};
    if (take('-')) return apply('-', Fraction{}, factor(depth + 1));
    if (!take('(')) return number();
    const Fraction value = sum_of_terms(depth + 1);
    if (!take(')')) throw NoValue{};
    return value;
  }
  Fraction number() {
    if (next() < '0' || next() > '9') throw NoValue{};
    int64_t value = 0;
    for (; here() >= '0' && here() <= '9'; ++at_) value = sum(product(value, 10), here() - '0');
    numbers.push_back(value);
    return {value, 1};
  }

  std::string_view text_;
  size_t at_ = 0;
};

// In ASCII, every blank a space, without what follows an equals sign.
std::string plain(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kSigns[] = {
      {"\xC3\x97", '*'}, {"\xC3\xB7", '/'}, {"\xE2\x88\x92", '-'}, {"x", '*'}, {"\xC2\xB7", '*'}};
  std::string result;
  for (size_t i = 0; i < text.size() && text[i] != '=';) {
    size_t length = 1;
    char c = text[i];
    for (const auto& [sign, ascii] : kSigns) {
      if (!text.substr(i).starts_with(sign)) continue;
      length = sign.size();
      c = ascii;
    }
    result += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
    i += length;
  }
  return result;
}

}  // namespace

std::optional<Expression> evaluate(std::string_view text) {
  if (text.size() > kLongestText) return std::nullopt;
  const std::string ascii = plain(text);
  Parser parser(ascii);
  try {
    const Fraction value = parser.whole();
    return Expression{value.over, value.under, std::move(parser.numbers)};
  } catch (const NoValue&) {
    return std::nullopt;
  }
}

}  // namespace countdown
