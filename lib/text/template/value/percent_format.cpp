// "%s-%d" % values
#include <cmath>

#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

struct Field {
  std::string key;  // of %(key)s
  bool has_key = false, left = false, zero = false, plus = false, space = false;
  int64_t width = 0, precision = -1;
  char kind = 's';
};

constexpr int64_t max_width = 1'000'000;

int64_t read_number(std::string_view format, size_t& at) {
  int64_t number = 0;
  for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
    number = std::min(max_width, number * 10 + (format[at] - '0'));
  return number;
}

// Reads what follows a '%'.
Field read_field(std::string_view format, size_t& at) {
  Field field;
  if (at < format.size() && format[at] == '(') {
    const size_t close = format.find(')', at);
    if (close == std::string_view::npos) fault("incomplete format key");
    field.key = format.substr(at + 1, close - at - 1);
    field.has_key = true;
    at = close + 1;
  }
  for (; at < format.size(); ++at) {
    if (format[at] == '-')
      field.left = true;
    else if (format[at] == '0')
      field.zero = true;
    else if (format[at] == '+')
      field.plus = true;
    else if (format[at] == ' ')
      field.space = true;
    else
      break;
  }
  field.width = read_number(format, at);
  if (at < format.size() && format[at] == '.') field.precision = read_number(format, ++at);
  if (at == format.size()) fault("incomplete format");
  field.kind = format[at++];
  return field;
}

std::string digits_of(Int value, int base, bool upper) {
  if (value == 0) return "0";
  std::string digits;
  for (auto rest = static_cast<unsigned __int128>(value < 0 ? -value : value); rest > 0; rest /= base) {
    digits += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[static_cast<int>(rest % base)];
  }
  return {digits.rbegin(), digits.rend()};
}

Int whole(const Value& value, char kind) {
  if (value.is_integer()) return value.integer();
  if (!value.is<double>() || kind == 'x' || kind == 'X' || kind == 'o')
    fault("%{} format: a number is required, not {}", kind, type_name(value));
  if (!(std::abs(value.real()) < 1e37)) fault("%{} format: the number is too large", kind);
  return static_cast<Int>(value.real());
}

std::string real_digits(double value, const Field& field) {
  const int precision = field.precision < 0 ? 6 : static_cast<int>(std::min<int64_t>(field.precision, 1000));
  const double magnitude = std::abs(value);
  switch (field.kind) {
    case 'f':
    case 'F': return fmt::format("{:.{}f}", magnitude, precision);
    case 'e': return fmt::format("{:.{}e}", magnitude, precision);
    case 'E': return fmt::format("{:.{}E}", magnitude, precision);
    case 'g': return fmt::format("{:.{}g}", magnitude, precision);
    default: return fmt::format("{:.{}G}", magnitude, precision);
  }
}

std::string format_number(const Value& value, const Field& field) {
  if (value.is_undefined()) fault_undefined(value);
  bool negative = false;
  std::string digits;
  if (std::string_view("diuxXo").find(field.kind) != std::string_view::npos) {
    const Int number = whole(value, field.kind);
    negative = number < 0;
    const bool hexadecimal = (field.kind | 0x20) == 'x';
    digits = digits_of(number, hexadecimal ? 16 : field.kind == 'o' ? 8 : 10, field.kind == 'X');
  } else {
    if (!value.is_number()) fault("must be real number, not {}", type_name(value));
    negative = std::signbit(value.real());
    digits = real_digits(value.real(), field);
  }
  const std::string sign = negative ? "-" : field.plus ? "+" : field.space ? " " : "";
  const auto used = static_cast<int64_t>(digits.size() + sign.size());
  if (field.zero && !field.left && used < field.width) digits.insert(0, static_cast<size_t>(field.width - used), '0');
  return sign + digits;
}

std::string format_field(const Value& value, const Field& field, Budget& budget) {
  std::string text;
  if (field.kind == 's' || field.kind == 'r') {
    text = field.kind == 's' ? str(value, budget) : repr(value, budget);
    if (field.precision >= 0) text.resize(byte_offset(text, field.precision));
  } else if (std::string_view("diuxXofFeEgG").find(field.kind) != std::string_view::npos) {
    text = format_number(value, field);
  } else {
    fault("unsupported format character '{}'", field.kind);
  }
  const int64_t missing = field.width - count_code_points(text);
  if (missing > 0) {
    budget.allocate(static_cast<uint64_t>(missing));
    text.insert(field.left ? text.size() : 0, static_cast<size_t>(missing), ' ');
  }
  budget.allocate(text.size());
  return text;
}

}  // namespace

Value format_percent(const Value& format, const Value& values, Budget& budget) {
  const std::string_view text = format.text()->bytes;
  const bool is_tuple = values.is_sequence(SequenceKind::tuple);
  const std::vector<Value> items = is_tuple ? values.sequence()->items : std::vector<Value>{values};
  size_t used = 0;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t percent = std::min(text.find('%', at), text.size());
    out += text.substr(at, percent - at);
    at = percent;
    if (at == text.size()) break;
    if (text.substr(++at).starts_with('%')) {
      out += '%', ++at;
      continue;
    }
    const Field field = read_field(text, at);
    if (field.has_key) {
      if (!values.dict()) fault("format requires a mapping");
      const Value* value = values.dict()->find(field.key);
      if (!value) fault("the mapping has no key {}", quote_text(field.key));
      out += format_field(*value, field, budget);
    } else {
      if (used == items.size()) fault("not enough arguments for format string");
      out += format_field(items[used++], field, budget);
    }
  }
  // Python lets what could be a mapping go unused.
  const bool subscriptable =
      values.dict() || values.range() || values.is_undefined() || values.is_sequence(SequenceKind::list);
  if (used < items.size() && !subscriptable) fault("not all arguments converted during string formatting");
  budget.allocate(text.size());
  return make_text(std::move(out), budget);
}

}  // namespace hexad::text::jinja
