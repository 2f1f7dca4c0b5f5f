// Reads JSON in one pass, without a tree. It knows the common part of the language: no escapes and nothing but ASCII in
// texts, little nesting. Every function is false for what it cannot read or what is not JSON: then the text is for a
// whole parser.
#pragma once
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace hexad::bridge {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool at_end() {
    space();
    return at_ == end_;
  }

  // `on_value(key)` reads the value of each key.
  template <typename OnValue>
  bool object(OnValue&& on_value) {
    return list('{', '}', [&] {
      std::string_view key;
      return text(key) && next(':') && on_value(key);
    });
  }
  // `on_item()` reads each item.
  template <typename OnItem>
  bool array(OnItem&& on_item) {
    return list('[', ']', on_item);
  }

  bool text(std::string_view& to) {
    if (!next('"')) return false;
    const char* const begin = at_;
    while (at_ < end_ && *at_ != '"' && *at_ != '\\' && *at_ >= 0x20 && *at_ < 0x7f) ++at_;
    to = {begin, static_cast<size_t>(at_ - begin)};
    return at_ < end_ && *at_++ == '"';
  }
  bool null() { return word("null"); }
  bool integer(int64_t& to) {
    std::string_view digits;
    return number(digits) && whole(digits, to);
  }
  bool real(double& to) {
    std::string_view digits;
    return number(digits) && whole(digits, to);
  }
  bool skip(int depth = 0) {
    constexpr int kDeepest = 8;
    space();
    std::string_view ignored;
    if (at_ == end_ || depth > kDeepest) return false;
    const auto inner = [&](auto&&...) { return skip(depth + 1); };
    switch (*at_) {
      case '{': return object(inner);
      case '[': return array(inner);
      case '"': return text(ignored);
      case 'n': return word("null");
      case 't': return word("true");
      case 'f': return word("false");
      default: return number(ignored);
    }
  }

 private:
  template <typename OnItem>
  bool list(char open, char close, OnItem&& on_item) {
    if (!next(open)) return false;
    if (next(close)) return true;
    do {
      if (!on_item()) return false;
    } while (next(','));
    return next(close);
  }

  void space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }
  bool next(char wanted) {
    space();
    return at_ < end_ && *at_ == wanted && (++at_, true);
  }
  bool word(std::string_view wanted) {
    space();
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  bool digits() {
    const char* const begin = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ > begin;
  }
  bool one_of(std::string_view wanted) {
    return at_ < end_ && wanted.find(*at_) != std::string_view::npos && (++at_, true);
  }
  bool number(std::string_view& to) {
    space();
    const char* const begin = at_;
    one_of("-");
    if (!one_of("0") && !digits()) return false;
    if (one_of(".") && !digits()) return false;
    if (one_of("eE") && (one_of("+-"), !digits())) return false;
    to = {begin, static_cast<size_t>(at_ - begin)};
    return true;
  }
  template <typename Number>
  static bool whole(std::string_view digits, Number& to) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
    return error == std::errc() && end == digits.data() + digits.size();
  }

  const char* at_;
  const char* end_;
};

}  // namespace hexad::bridge
