#include "lib/yaml/override/casts.hpp"

#include <cmath>

#include "lib/base/error.hpp"
#include "lib/yaml/python_text.hpp"
#include "lib/yaml/word.hpp"

namespace hexad::yaml {
namespace {

[[noreturn]] void cannot(const std::string& function, const Node& value) {
  fail(ErrorKind::config, "{}() cannot take {}", function, value.describe());
}

// Text as the number it spells; other values as they are.
Node spelled(const Node& value) { return value.is_string() ? Node(word_value(value.as_string())) : value; }

Node to_int(const Node& value) {
  const Node number = spelled(value);
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
  const Node word = spelled(value);
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

}  // namespace

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

}  // namespace hexad::yaml
