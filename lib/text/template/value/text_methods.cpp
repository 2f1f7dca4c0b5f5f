// str's methods.
#include <algorithm>
#include <map>

#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/text_split.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

using Method = Value (*)(const std::string& self, Arguments&, Budget&);

Value list_of(const std::vector<std::string_view>& pieces, Budget& budget) {
  std::vector<Value> items;
  for (std::string_view piece : pieces) items.push_back(make_text(std::string(piece), budget));
  return make_list(std::move(items), budget);
}

template <std::string (*convert)(std::string_view)>
Value convert_case(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound none("method", arguments, {});
  budget.allocate(3 * self.size());
  return make_text(convert(self), budget);
}

template <bool (*property)(std::string_view)>
Value has_property(const std::string& self, Arguments& arguments, Budget&) {
  const Bound none("method", arguments, {});
  return property(self);
}

template <bool left, bool right>
Value strip_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("strip", arguments, {"chars"});
  if (!bound.has(0) || bound.at(0).is_none()) return make_text(std::string(strip(self, left, right)), budget);
  return make_text(std::string(strip_characters(self, bound.text(0, ""), left, right)), budget);
}

template <bool from_right>
Value split_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("split", arguments, {"sep", "maxsplit"});
  const int64_t most = bound.integer(1, -1);
  budget.allocate(self.size() * 8);
  if (!bound.has(0) || bound.at(0).is_none()) return list_of(split_space(self, most, from_right), budget);
  const std::string separator = bound.text(0, "");
  if (separator.empty()) fault("empty separator");
  return list_of(split(self, separator, most, from_right), budget);
}

Value splitlines_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("splitlines", arguments, {"keepends"});
  budget.allocate(self.size() * 8);
  return list_of(split_lines(self, bound.flag(0, false)), budget);
}

template <bool from_right>
Value partition_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("partition", arguments, {"sep"}, 1);
  const std::string separator = bound.text(0, "");
  if (separator.empty()) fault("empty separator");
  const size_t at = from_right ? self.rfind(separator) : self.find(separator);
  const auto text = [&](std::string piece) { return make_text(std::move(piece), budget); };
  std::vector<Value> parts;
  if (at == std::string::npos) {
    parts = {text(from_right ? "" : self), text(""), text(from_right ? self : "")};
  } else {
    parts = {text(self.substr(0, at)), text(separator), text(self.substr(at + separator.size()))};
  }
  return make_sequence(SequenceKind::tuple, std::move(parts), budget);
}

// The part of the text that the optional arguments start and end select, and where it begins in code points.
struct Window {
  std::string_view text;
  int64_t first;
};
Window window(std::string_view self, const Bound& bound) {
  const int64_t size = count_code_points(self);
  const auto clip = [&](size_t index, int64_t fallback) {
    const int64_t value = bound.has(index) && !bound.at(index).is_none() ? bound.integer(index, 0) : fallback;
    return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
  };
  const int64_t first = clip(1, 0), last = std::max(first, clip(2, size));
  const size_t begin = byte_offset(self, first);
  return {self.substr(begin, byte_offset(self.substr(begin), last - first)), first};
}

template <bool from_right, bool must_find>
Value find_text(const std::string& self, Arguments& arguments, Budget&) {
  const Bound bound("find", arguments, {"sub", "start", "end"}, 1);
  const std::string needle = bound.text(0, "");
  const Window part = window(self, bound);
  const size_t at = from_right ? part.text.rfind(needle) : part.text.find(needle);
  if (at != std::string_view::npos) return part.first + count_code_points(part.text.substr(0, at));
  if (must_find) fault("substring not found");
  return -1;
}

Value count_text(const std::string& self, Arguments& arguments, Budget&) {
  const Bound bound("count", arguments, {"sub", "start", "end"}, 1);
  const std::string needle = bound.text(0, "");
  const Window part = window(self, bound);
  if (needle.empty()) return count_code_points(part.text) + 1;
  return static_cast<int64_t>(split(part.text, needle, -1, false).size()) - 1;
}

// startswith and endswith: one text or a tuple of them.
template <bool at_end>
Value matches_affix(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound(at_end ? "endswith" : "startswith", arguments, {"affix", "start", "end"}, 1);
  const Window part = window(self, bound);
  const auto matches = [&](const Value& affix) {
    if (!affix.text())
      fault("{}() wants a str or a tuple of str, not {}", at_end ? "endswith" : "startswith", type_name(affix));
    return at_end ? part.text.ends_with(affix.text()->bytes) : part.text.starts_with(affix.text()->bytes);
  };
  if (bound.at(0).is_undefined()) fault_undefined(bound.at(0));
  if (!bound.at(0).is_sequence(SequenceKind::tuple)) return matches(bound.at(0));
  const std::vector<Value>& choices = bound.at(0).sequence()->items;
  for (const Value& choice : choices) {
    budget.touch(part.text.size());
    if (matches(choice)) return true;
  }
  return false;
}

template <bool at_end>
Value remove_affix(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound(at_end ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1);
  const std::string affix = bound.text(0, "");
  const bool matches = at_end ? self.ends_with(affix) : self.starts_with(affix);
  if (!matches) return make_text(self, budget);
  return make_text(at_end ? self.substr(0, self.size() - affix.size()) : self.substr(affix.size()), budget);
}

Value replace_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  return make_text(replace(self, bound.text(0, ""), bound.text(1, ""), bound.integer(2, -1), budget), budget);
}

Value join_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("join", arguments, {"iterable"}, 1);
  std::string joined;
  bool first = true;
  const Iterator next = iterate(bound.at(0), budget);
  for (Value item; next(item); first = false) {
    if (!item.text()) fault("join() wants a sequence of str, found {}", type_name(item));
    budget.allocate(self.size() + item.text()->bytes.size());
    if (!first) joined += self;
    joined += item.text()->bytes;
  }
  return make_text(std::move(joined), budget);
}

enum class Side { left, right, both };

template <Side side>
Value pad_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("ljust", arguments, {"width", "fillchar"}, 1);
  const std::string fill = bound.text(1, " ");
  if (count_code_points(fill) != 1) fault("the fill character must be exactly one character long");
  const int64_t missing = std::max<int64_t>(0, bound.integer(0, 0) - count_code_points(self));
  // Python's str.center puts the odd one left when width is odd.
  const int64_t left = side == Side::right  ? missing
                       : side == Side::left ? 0
                                            : missing / 2 + (missing & bound.integer(0, 0) & 1);
  budget.allocate(static_cast<uint64_t>(missing) * fill.size());
  std::string padded;
  for (int64_t i = 0; i < left; ++i) padded += fill;
  padded += self;
  for (int64_t i = left; i < missing; ++i) padded += fill;
  return make_text(std::move(padded), budget);
}

Value zfill_method(const std::string& self, Arguments& arguments, Budget& budget) {
  const Bound bound("zfill", arguments, {"width"}, 1);
  const int64_t missing = std::max<int64_t>(0, bound.integer(0, 0) - count_code_points(self));
  budget.allocate(static_cast<uint64_t>(missing));
  const size_t sign = self.starts_with('-') || self.starts_with('+') ? 1 : 0;
  return make_text(self.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + self.substr(sign), budget);
}

// "{} {0} {name}".format(...): replacement fields without conversions and format specifications.
Value format_method(const std::string& self, Arguments& arguments, Budget& budget) {
  std::string out;
  size_t next_position = 0;
  for (size_t i = 0; i < self.size(); ++i) {
    const char c = self[i];
    if ((c == '{' || c == '}') && i + 1 < self.size() && self[i + 1] == c) {
      out += c, ++i;
    } else if (c != '{') {
      if (c == '}') fault("Single '}}' encountered in format string");
      out += c;
    } else {
      const size_t close = self.find('}', i);
      if (close == std::string::npos) fault("expected '}}' before end of string");
      const std::string field = self.substr(i + 1, close - i - 1);
      if (field.find_first_of("!:.[{") != std::string::npos)
        fault("the replacement field {{{}}} is not supported: only {{}}, {{0}} and {{name}} are", field);
      const Value* value = nullptr;
      const bool is_index = field.empty() || (field.size() < 10 && is_decimal(field));
      const size_t position = field.empty() ? next_position++ : is_index ? std::stoul(field) : 0;
      if (is_index && position < arguments.positional.size()) value = &arguments.positional[position];
      for (const auto& [name, named] : arguments.named) {
        if (!is_index && name == field) value = &named;
      }
      if (!value) fault("format(): there is no argument for {{{}}}", field);
      const std::string piece = str(*value, budget);
      budget.allocate(piece.size());
      out += piece;
      i = close;
    }
  }
  return make_text(std::move(out), budget);
}

const std::map<std::string_view, Method>& methods() {
  static const std::map<std::string_view, Method> table = {{"upper", convert_case<to_upper>},
                                                           {"lower", convert_case<to_lower>},
                                                           {"title", convert_case<to_title>},
                                                           {"capitalize", convert_case<capitalize>},
                                                           {"swapcase", convert_case<swap_case>},
                                                           {"casefold", convert_case<case_fold>},
                                                           {"isalpha", has_property<is_alpha>},
                                                           {"isalnum", has_property<is_alnum>},
                                                           {"isdigit", has_property<is_digit>},
                                                           {"isdecimal", has_property<is_decimal>},
                                                           {"isnumeric", has_property<is_numeric>},
                                                           {"isspace", has_property<all_space>},
                                                           {"isupper", has_property<is_upper>},
                                                           {"islower", has_property<is_lower>},
                                                           {"strip", strip_method<true, true>},
                                                           {"lstrip", strip_method<true, false>},
                                                           {"rstrip", strip_method<false, true>},
                                                           {"split", split_method<false>},
                                                           {"rsplit", split_method<true>},
                                                           {"splitlines", splitlines_method},
                                                           {"partition", partition_method<false>},
                                                           {"rpartition", partition_method<true>},
                                                           {"find", find_text<false, false>},
                                                           {"rfind", find_text<true, false>},
                                                           {"index", find_text<false, true>},
                                                           {"rindex", find_text<true, true>},
                                                           {"count", count_text},
                                                           {"startswith", matches_affix<false>},
                                                           {"endswith", matches_affix<true>},
                                                           {"removeprefix", remove_affix<false>},
                                                           {"removesuffix", remove_affix<true>},
                                                           {"replace", replace_method},
                                                           {"join", join_method},
                                                           {"format", format_method},
                                                           {"zfill", zfill_method},
                                                           {"ljust", pad_method<Side::left>},
                                                           {"rjust", pad_method<Side::right>},
                                                           {"center", pad_method<Side::both>}};
  return table;
}

}  // namespace

bool is_text_method(std::string_view name) { return methods().contains(name); }

Value call_text_method(Evaluator& evaluator, const Value& self, std::string_view name, Arguments& arguments) {
  evaluator.budget.touch(self.text()->bytes.size());
  return methods().find(name)->second(self.text()->bytes, arguments, evaluator.budget);
}

}  // namespace hexad::text::jinja
