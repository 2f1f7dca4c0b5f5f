// The walk over a parse tree that makes the expression; split over sets.cpp, terms.cpp, calls.cpp.
#pragma once
#include <string>
#include <vector>

#include "plugins/environment/math/expression.hpp"
#include "plugins/environment/math/latex/parse_tree.hpp"

namespace hexad::math {

// Thrown where a tree has no meaning here.
struct Unreadable {};

class LatexReader {
 public:
  // `depth` counts derivatives inside of derivatives, whose bodies are read anew.
  LatexReader(std::string_view source, bool real, int depth = 0);

  // Throws Unreadable.
  Expression read() const;

 private:
  using Elements = std::vector<std::vector<Expression>>;  // by semicolons, then by commas

  // sets.cpp: lists, sets, relations
  Expression set_or_tuple(const Elements& elements) const;
  Elements elements(const ParseNode& semicolons) const;
  std::vector<Expression> element(const ParseNode& node) const;
  std::vector<Expression> either_sign(const ParseNode& node) const;
  Expression membership(const ParseNode& node) const;
  Expression relation(const ParseNode& node) const;
  Expression set_relation(const ParseNode& node) const;
  Expression set_claim(const ParseNode& node) const;
  Expression set_operation(const ParseNode& node) const;
  Expression set_atom(const ParseNode& node) const;
  Expression interval(const ParseNode& node) const;
  Expression literal_set(const ParseNode& node) const;

  // terms.cpp: arithmetic and atoms
  Expression expr(const ParseNode& node) const;
  Expression mp(const ParseNode& node) const;
  Expression unary(const ParseNode& node) const;
  Expression factors(const std::vector<const ParseNode*>& postfixes, size_t from) const;
  Expression postfix(const ParseNode& node) const;
  Expression exp(const ParseNode& node) const;
  Expression comp(const ParseNode& node) const;
  Expression fraction(const ParseNode& node) const;
  Expression matrix(const ParseNode& node) const;
  Expression atom(const ParseNode& node) const;
  Expression named(const ParseNode& node) const;
  Expression atoms(const ParseNode& node) const;
  std::string letters(const ParseNode& name) const;
  Expression letter_symbol(const std::string& text) const;
  Expression differential(std::string_view text) const;
  // The expression or atom of x_{..} and x^{..}.
  Expression script(const ParseNode& node) const;

  // calls.cpp: functions
  Expression func(const ParseNode& node) const;
  Expression call_one(const ParseNode& node) const;
  Expression call_many(const ParseNode& node) const;
  Expression call_named(const ParseNode& node) const;
  Expression integrate(const ParseNode& node) const;
  Expression series(const ParseNode& node) const;
  Expression limit(const ParseNode& node) const;
  void collect(const ParseNode& args, std::vector<Expression>& into) const;

  std::string_view text(const ParseNode& token) const { return lexemes_[token.begin].text; }
  std::string joined_text(const ParseNode& node) const;

  std::string_view source_;
  bool real_;
  int depth_;
  std::vector<Lexeme> lexemes_;
};

}  // namespace hexad::math
