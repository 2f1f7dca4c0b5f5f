// Template source to tokens, with Jinja's rules for white space as transformers sets them: trim_blocks, lstrip_blocks,
// one newline at the end of the source dropped.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/template/fault.hpp"

namespace hexad::text::jinja {

enum class TokenKind { data, print_begin, print_end, block_begin, block_end, name, text, integer, real, symbol, end };

struct Token {
  TokenKind kind;
  std::string text;  // of data and text: unescaped
  int line;
};

// A mistake in the source, at a line of it.
class SyntaxFault : public Fault {
 public:
  SyntaxFault(int line, const std::string& message) : Fault(message), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

// Ends with a token of kind `end`. Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view source);

}  // namespace hexad::text::jinja
