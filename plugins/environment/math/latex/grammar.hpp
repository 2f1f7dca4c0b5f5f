// The grammar of answers: ordered choices over tokens, as PS.g4 of latex2sympy2_extended 1.11 has them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/environment/math/latex/lexer.hpp"

namespace hexad::math {

struct Symbol {
  bool is_token;
  uint16_t index;  // a Token, or a rule
};

struct Rule {
  std::string name;  // empty for what a repetition or a choice inside of a rule became: no node of its own
  std::vector<std::vector<Symbol>> alternatives;
};

struct Grammar {
  std::vector<Rule> rules;  // the first one is where it starts
};

// Built once from its text.
const Grammar& grammar();

// From lines "name: choice / choice", with x?, x*, x+ and brackets. Unknown names are std::logic_error.
Grammar read_grammar(std::string_view text);

}  // namespace hexad::math
