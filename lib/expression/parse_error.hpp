#pragma once

#include <stdexcept>
#include <string>

namespace hexad::expression {

// A text that is no expression or no message. what() is "column 3: got '=', wanted '=='", in valid UTF-8 whatever was
// read.
class ParseError : public std::runtime_error {
 public:
  ParseError(size_t column, const std::string& reason)
      : std::runtime_error("column " + std::to_string(column) + ": " + reason), column_(column), reason_(reason) {}

  size_t column() const { return column_; }  // counted from 1, in characters
  const std::string& reason() const { return reason_; }

 private:
  size_t column_;
  std::string reason_;
};

}  // namespace hexad::expression
