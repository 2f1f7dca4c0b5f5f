// Texts with expressions in them: "{tp} does not divide the {world.ranks} ranks".
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/expression/expression.hpp"

namespace hexad::expression {

// Braces of the text itself are written twice: {{ and }}. Cheap to copy as expressions are.
class Message {
 public:
  static Message parse(std::string_view text);  // throws ParseError, with the column in the whole text

  std::string format(const Lookup& lookup) const;  // with ? for what is unknown

  const std::vector<std::string>& paths() const { return paths_; }  // of all expressions; each once
  const std::string& text() const { return text_; }                 // as it was given

 private:
  std::vector<std::variant<std::string, Expression>> parts_;
  std::vector<std::string> paths_;
  std::string text_;
};

}  // namespace hexad::expression
