#include "lib/text/template/value/python_text.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "lib/text/template/fault.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

void append_repr(const Value& value, std::string& out, Budget& budget);

void append_items(const std::vector<Value>& items, std::string& out, Budget& budget) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(items[i], out, budget);
  }
}

void append_dict(const Dict& dict, std::string& out, Budget& budget) {
  out += '{';
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(dict.entries[i].first, out, budget);
    out += ": ";
    append_repr(dict.entries[i].second, out, budget);
  }
  out += '}';
}

void append_sequence(const Sequence& sequence, std::string& out, Budget& budget) {
  const bool tuple = sequence.kind == SequenceKind::tuple;
  const bool view = sequence.kind > SequenceKind::tuple;
  out += view    ? fmt::format("{}([", type_name(std::make_shared<const Sequence>(Sequence{sequence.kind, {}, 1})))
         : tuple ? "("
                 : "[";
  append_items(sequence.items, out, budget);
  out += view ? "])" : tuple ? sequence.items.size() == 1 ? ",)" : ")" : "]";
}

void append_repr(const Value& value, std::string& out, Budget& budget) {
  const Budget::Level level(budget);
  budget.step();
  const size_t before = out.size();
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is<bool>()) {
    out += value.integer() ? "True" : "False";
  } else if (value.is_integer()) {
    out += integer_text(value.integer());
  } else if (value.is<double>()) {
    out += real_text(value.real());
  } else if (const Text* text = value.text()) {
    budget.touch(text->bytes.size());
    out += text->safe ? fmt::format("Markup({})", quote_text(text->bytes)) : quote_text(text->bytes);
  } else if (const Sequence* sequence = value.sequence()) {
    append_sequence(*sequence, out, budget);
    return;
  } else if (const Dict* dict = value.dict()) {
    append_dict(*dict, out, budget);
    return;
  } else if (const Range* range = value.range()) {
    out += fmt::format("range({}, {}", integer_text(range->start), integer_text(range->stop));
    out += range->step == 1 ? ")" : fmt::format(", {})", integer_text(range->step));
  } else if (const Namespace* space = value.space()) {
    out += "<Namespace ";
    append_dict(space->attributes, out, budget);
    out += '>';
    return;
  } else {
    fault("a {} cannot be printed", type_name(value));
  }
  budget.allocate(out.size() - before);
}

constexpr std::string_view simple_names = "ntr\\'\"abfv";
constexpr std::string_view simple_values = "\n\t\r\\'\"\a\b\f\v";

uint32_t read_digits(std::string_view text, size_t& at, size_t count, int base) {
  uint32_t value = 0;
  size_t read = 0;
  for (; read < count && at < text.size(); ++read, ++at) {
    const char c = text[at];
    const int digit = c >= '0' && c <= '9'                     ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= base) break;
    value = value * base + digit;
  }
  if (base == 16 && read < count) fault("an escape in a string is cut short: {} hexadecimal digits are wanted", count);
  return value;
}

}  // namespace

std::string integer_text(Int value) {
  if (value == 0) return "0";
  auto magnitude = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string digits;
  for (; magnitude > 0; magnitude /= 10) digits += static_cast<char>('0' + static_cast<int>(magnitude % 10));
  if (value < 0) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quote_text(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const uint32_t code = next_code_point(text, i);
    switch (code) {
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      case '\\': out += "\\\\"; continue;
      default: break;
    }
    if (code == static_cast<uint32_t>(quote)) {
      (out += '\\') += quote;
    } else if (is_printable(code)) {
      append_code_point(out, code);
    } else {
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
  }
  return out + quote;
}

std::string repr(const Value& value, Budget& budget) {
  std::string out;
  append_repr(value, out, budget);
  return out;
}

std::string str(const Value& value, Budget& budget) {
  if (const Text* text = value.text()) {
    budget.touch(text->bytes.size());
    return text->bytes;
  }
  if (value.is_undefined()) return {};
  return repr(value, budget);
}

std::optional<Int> parse_integer(std::string_view source, int base) {
  const std::string ascii = with_ascii_digits(source);
  std::string_view text = ascii;
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefix = [&](char letter) { return text.size() > 1 && text[0] == '0' && (text[1] | 0x20) == letter; };
  for (const auto& [letter, radix] : {std::pair('x', 16), std::pair('o', 8), std::pair('b', 2)}) {
    if (!prefix(letter) || (base != radix && base != 0)) continue;
    text.remove_prefix(2), base = radix;
    if (text.starts_with('_')) text.remove_prefix(1);
    break;
  }
  if (base == 0) base = 10;
  Int value = 0;
  bool digit_before = false;
  for (char c : text) {
    if (c == '_' && digit_before) {
      digit_before = false;
      continue;
    }
    const int digit = c >= '0' && c <= '9'                     ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, Int{base}, &value) || __builtin_add_overflow(value, Int{digit}, &value)) {
      fault("an integer is too large");
    }
    digit_before = true;
  }
  if (!digit_before) return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> parse_real(std::string_view source) {
  const std::string ascii = with_ascii_digits(source);
  std::string_view text = ascii;
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit_at = [&](size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '9'; };
    if (text[i] == '_' && i > 0 && is_digit_at(i - 1) && is_digit_at(i + 1)) continue;
    digits += text[i];
  }
  std::string_view rest = digits;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.starts_with("+") || (rest.starts_with('-') && rest != digits)) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::result_out_of_range) return std::strtod(std::string(rest).c_str(), nullptr);
  if (error != std::errc() || end != rest.data() + rest.size() || rest.find('(') != std::string_view::npos)
    return std::nullopt;
  return value;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i++];
      continue;
    }
    const char kind = text[i + 1];
    i += 2;
    if (const size_t simple = simple_names.find(kind); simple != std::string_view::npos) {
      out += simple_values[simple];
    } else if (kind == '\n') {
      continue;  // the line goes on
    } else if (kind >= '0' && kind <= '7') {
      append_code_point(out, read_digits(text, --i, 3, 8));
    } else if (kind == 'x' || kind == 'u' || kind == 'U') {
      const uint32_t code = read_digits(text, i, kind == 'x' ? 2 : kind == 'u' ? 4 : 8, 16);
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        fault("\\{}{:x} in a string is not a character", kind, code);
      append_code_point(out, code);
    } else if (kind == 'N') {
      fault("\\N{{...}} in strings is not supported: write the character itself or \\uXXXX");
    } else {
      (out += '\\') += kind;
    }
  }
  return out;
}

}  // namespace hexad::text::jinja
