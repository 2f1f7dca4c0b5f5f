#include "lib/yaml/override.hpp"

#include <cmath>

#include "lib/base/error.hpp"
#include "lib/base/pattern.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/base/utf8.hpp"
#include "lib/yaml/interpolation_grammar.hpp"
#include "lib/yaml/scalar.hpp"
#include "lib/yaml/secret.hpp"

namespace hexad::yaml {
namespace {

[[noreturn]] void cannot(const std::string& function, const Node& value) {
  fail(ErrorKind::config, "{}() cannot take {}", function, value.describe());
}

// Text as the number it spells; other values as they are.
Node spelled(const Node& value) { return value.is_string() ? Node(word_value(value.as_string())) : value; }

Node to_int(const Node& value) {
  Node number = spelled(value);
  if (number.is_int() && !value.is_bool()) return number;
  if (value.is_bool()) return Node(int64_t{value.as_bool()});
  if (value.is_double() && std::abs(value.as_double()) < 9e15) return Node(static_cast<int64_t>(value.as_double()));
  cannot("int", value);
}

Node to_float(const Node& value) {
  const Node number = spelled(value);
  if (value.is_bool()) return Node(value.as_bool() ? 1.0 : 0.0);
  if (number.is_number()) return Node(number.as_double());
  cannot("float", value);
}

Node to_bool(const Node& value) {
  if (value.is_null()) return Node(false);
  if (value.is_number()) return Node(value.as_double() != 0);
  Node word = spelled(value);
  if (word.is_bool()) return word;
  cannot("bool", value);
}

Node to_str(const Node& value) {
  if (value.is_null()) cannot("str", value);
  if (value.is_bool()) return Node(std::string(value.as_bool() ? "true" : "false"));
  return Node(python_str(value));
}

Node cast(const std::string& function, const Node& value) {
  Node result = value;
  if (value.is_list()) {
    for (Node& item : result.items()) item = cast(function, item);
    return result;
  }
  if (value.is_map()) {
    for (auto& [key, item] : result.entries()) item = cast(function, item);
    return result;
  }
  if (function == "int") return to_int(value);
  if (function == "float") return to_float(value);
  return function == "bool" ? to_bool(value) : to_str(value);
}

// Lists and maps element by element.
Node cast_value(const std::string& function, const Node::List& arguments) {
  if (function != "int" && function != "float" && function != "str" && function != "bool") {
    fail(ErrorKind::config, "unknown function '{}'; there are int, float, str, bool (quote a text with parentheses)",
         function);
  }
  if (arguments.size() != 1) {
    fail(ErrorKind::config, "{}() takes one value, got {}", function, arguments.size());
  }
  return cast(function, arguments[0]);
}

constexpr size_t kLongestKey = 1000;

// The right-hand side of an override.
class ValueParser {
 public:
  ValueParser(std::string_view text, const Location& location) : text_(text), location_(location) {}

  Node parse() {
    skip_blanks();
    if (at_end()) return node(std::string());
    Node result = element();
    if (peek() == ',') error("a sweep over several values is not supported; quote a text that holds a comma");
    if (!at_end()) error(fmt::format("unexpected '{}'; quote a text with special characters", character()));
    return result;
  }

 private:
  bool at_end() const { return position_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }
  // The whole of it, which may be several bytes.
  std::string_view character() const {
    size_t size = 1;
    while ((static_cast<unsigned char>(peek(size)) & 0xC0) == 0x80) ++size;
    return text_.substr(position_, size);
  }
  void skip_blanks() {
    while (is_blank(peek())) ++position_;
  }
  Node node(Node::Value value) const { return Node(std::move(value), location_); }

  [[noreturn]] void error(std::string_view what) const {
    fail(ErrorKind::config, "{}: {} at character {} of the value", location_.text(), what, position_ + 1);
  }

  Node element() {
    if (++depth_ > kDeepestNesting) error("nested too deep");
    Node result;
    if (peek() == '[') {
      result = node(sequence(']'));
    } else if (peek() == '{') {
      result = map();
    } else if (peek() == '\'' || peek() == '"') {
      result = checked(quoted());
    } else {
      result = primitive(true);
    }
    --depth_;
    return result;
  }

  Node checked(std::string text) const {
    try {
      if (has_interpolation(text)) parse_interpolation(text);
    } catch (const Error& error) {
      fail(ErrorKind::config, "{}: {}", location_.text(), error.what());
    }
    return node(std::move(text));
  }

  // An opening bracket, elements between commas, and `close`.
  Node::List sequence(char close) {
    Node::List items;
    ++position_;
    skip_blanks();
    while (peek() != close) {
      if (!items.empty()) comma(close);
      items.push_back(element());
      skip_blanks();
    }
    ++position_;
    return items;
  }

  void comma(char close) {
    if (peek() != ',') error(fmt::format("wanted ',' or '{}'", close));
    ++position_;
    skip_blanks();
  }

  Node map() {
    Node result = node(Node::Map{});
    ++position_;
    skip_blanks();
    while (peek() != '}') {
      if (!result.entries().empty()) comma('}');
      const Node key = primitive(false);
      if (!key.is_string()) error(fmt::format("a key must be text, got {}", key.describe()));
      if (peek() != ':') error("wanted ':'");
      ++position_;
      skip_blanks();
      Node value = element();
      skip_blanks();
      if (Node* old = result.child(key.as_string())) {
        *old = std::move(value);
      } else {
        result.entries().emplace_back(key.as_string(), std::move(value));
      }
    }
    ++position_;
    return result;
  }

  // Backslashes count only before a quotation mark: each pair stands for one, an odd one escapes the mark.
  std::string quoted() {
    const char quote = text_[position_++];
    std::string result;
    while (true) {
      if (at_end()) error("the quotation does not end");
      size_t backslashes = 0;
      while (peek() == '\\') ++backslashes, ++position_;
      if (peek() != quote) {
        result += std::string(backslashes, '\\');
        if (!at_end()) result += text_[position_++];
        continue;
      }
      result += std::string(backslashes / 2, '\\');
      ++position_;
      if (backslashes % 2 == 0) return result;
      result += quote;
    }
  }

  Node primitive(bool is_value) {
    std::string text;
    bool is_word = true;  // no escapes, so that it may be a number
    const size_t begin = position_;
    while (!at_end()) {
      const size_t close = is_value && text_.substr(position_).starts_with("${") ? text_.find('}', position_) : 0;
      if (peek() == '\\' && is_escapable(peek(1))) {
        is_word = false;
        text += peek(1);
        position_ += 2;
      } else if (close != 0 && close != std::string_view::npos && close > position_ + 2) {
        text += text_.substr(position_, close + 1 - position_);
        position_ = close + 1;
      } else if (is_word_char(peek()) || (is_value && peek() == ':')) {
        text += text_[position_++];
      } else if (is_blank(peek())) {
        const size_t blanks = position_;
        skip_blanks();
        if (is_value && peek() == '(') break;
        if (!ends_primitive(is_value)) text += text_.substr(blanks, position_ - blanks);
      } else {
        break;
      }
    }
    if (position_ == begin) error(at_end() ? "wanted a value" : fmt::format("unexpected '{}'", character()));
    if (is_value && is_word && peek() == '(') return call(text);
    if (!is_word) return checked(std::move(text));
    Node::Value value = word(text);
    return std::holds_alternative<std::string>(value) ? checked(std::move(text)) : node(std::move(value));
  }

  bool ends_primitive(bool is_value) const {
    return at_end() || peek() == ',' || peek() == ']' || peek() == '}' || peek() == ')' || (!is_value && peek() == ':');
  }

  Node::Value word(const std::string& text) const {
    try {
      return word_value(text);
    } catch (const Error& error) {
      fail(ErrorKind::config, "{}: {}", location_.text(), error.what());
    }
  }

  Node call(const std::string& name) {
    const Node::List arguments = sequence(')');
    try {
      return Node(cast_value(name, arguments).value(), location_);
    } catch (const Error& error) {
      fail(ErrorKind::config, "{}: {}", location_.text(), error.what());
    }
  }

  std::string_view text_;
  const Location& location_;
  size_t position_ = 0;
  int depth_ = 0;
};

void check_key(const std::string& key, const std::string& where) {
  static const Pattern path(
      "(?:[A-Za-z_$][A-Za-z0-9_$-]*|(?:0|[1-9](?:_?[0-9])*)(?=\\.))"
      "(?:\\.(?:[A-Za-z_$][A-Za-z0-9_$-]*|0|[1-9](?:_?[0-9])*))*");
  static const Pattern group("[A-Za-z_][A-Za-z0-9_-]*(?:/[A-Za-z_][A-Za-z0-9_-]*)+");
  if (key.find('@') != std::string::npos) {
    fail(ErrorKind::config, "{}: config groups and packages (key@package) are not supported", where);
  }
  if (key.size() > kLongestKey || (!path.matches(key) && !group.matches(key))) {
    fail(ErrorKind::config, "{}: '{}' is not a key; wanted names joined by dots, as in grpo.num_prompts_per_step=8",
         where, key);
  }
}

}  // namespace

Override parse_override(std::string_view text) {
  Override result;
  result.text = without_assigned_secrets(text);
  const Location location{fmt::format("override '{}'", shortened(result.text, 200)), 0, 0};
  std::string_view rest = text;
  if (rest.starts_with("~")) {
    result.kind = Override::Kind::remove;
    rest.remove_prefix(1);
  } else if (rest.starts_with("+")) {
    const bool force = rest.starts_with("++");
    result.kind = force ? Override::Kind::force_add : Override::Kind::add;
    rest.remove_prefix(force ? 2 : 1);
  }
  const size_t equal = rest.find('=');
  result.key = std::string(rest.substr(0, equal));
  check_key(result.key, location.text());
  if (equal != std::string_view::npos) {
    if (names_secret(result.key)) keep_secret(rest.substr(equal + 1));
    result.value = ValueParser(rest.substr(equal + 1), location).parse();
    keep_secrets(Node(Node::Map{{result.key, *result.value}}));
  } else if (result.kind != Override::Kind::remove) {
    fail(ErrorKind::config, "{}: there is no '='; wanted {}=value", location.text(), result.key);
  }
  return result;
}

}  // namespace hexad::yaml
