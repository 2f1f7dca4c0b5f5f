// From tokens to a parse tree.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "plugins/environment/math/latex/grammar.hpp"

namespace hexad::math {

struct ParseNode {
  std::string_view rule;  // its name, or empty for a token
  Token token = Token::end;
  size_t begin = 0, end = 0;  // lexemes
  std::vector<ParseNode> children;

  bool is(std::string_view name) const { return rule == name; }
  bool is(Token which) const { return rule.empty() && token == which; }
  const ParseNode* child(std::string_view name, size_t nth = 0) const;
  const ParseNode* child(Token which) const;
};

// The tree of all lexemes by the grammar's first rule, or nothing. Of all trees it is the one whose choices come first,
// the outer and the left before the inner and the right: what an adaptive LL(*) parser (ANTLR 4) finds. Time and
// memory are polynomial: which lexemes each rule can span is computed once for each place. More than kMostLexemes, or
// deeper nesting than kDeepest, is not read.
inline constexpr size_t kMostLexemes = 600;
std::optional<ParseNode> parse_tree(const std::vector<Lexeme>& lexemes);

}  // namespace hexad::math
