// LaTeX of an answer, as tokens: the longest token at each place, as the lexer of latex2sympy2_extended 1.11 (PS.g4).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::math {

#define HEXAD_MATH_TOKENS(X)                                                                                         \
  X(transposed)                                                                                                      \
  X(degrees)                                                                                                         \
  X(add)                                                                                                             \
  X(sub)                                                                                                             \
  X(mul)                                                                                                             \
  X(div) X(lparen) X(rparen) X(lparen_visual) X(rparen_visual) X(lgroup) X(rgroup) X(lbrace) X(rbrace)               \
      X(lbrace_visual) X(rbrace_visual) X(lbrace_cmd) X(rbrace_cmd) X(lbracket) X(rbracket) X(lbrack) X(rbrack)      \
          X(phantom) X(boxed) X(bar) X(lvert) X(rvert) X(vert) X(norm) X(langle) X(rangle) X(lfloor) X(rfloor)       \
              X(llcorner) X(lrcorner) X(lceil) X(rceil) X(ulcorner) X(urcorner) X(lim) X(to) X(integral) X(sum)      \
                  X(prod) X(function) X(gamma) X(extreme) X(function_name) X(multi_name) X(unread_name) X(sqrt)      \
                      X(times) X(cdot) X(cmd_div) X(frac) X(binom) X(choose) X(mod) X(operatorname) X(matrix_begin)  \
                          X(matrix_end) X(array_begin) X(array_end) X(det_begin) X(det_end) X(column) X(row)         \
                              X(underscore) X(caret) X(colon) X(semicolon) X(comma) X(differential) X(exp_e)         \
                                  X(notation_e) X(letter) X(number) X(scientific) X(in) X(assign) X(equal) X(approx) \
                                      X(lt) X(lte) X(gt) X(gte) X(unequal) X(bang) X(percent_number) X(greek)        \
                                          X(other_symbol) X(symbol) X(named_set) X(accent) X(cup) X(cap) X(setminus) \
                                              X(plus_minus) X(empty_set) X(supset) X(subset) X(notin) X(unused) X(end)

enum class Token : uint8_t {
#define HEXAD_MATH_TOKEN(name) name,
  HEXAD_MATH_TOKENS(HEXAD_MATH_TOKEN)
#undef HEXAD_MATH_TOKEN
};

// The token of this name in the grammar, or nothing.
std::optional<Token> token_named(std::string_view name);

struct Lexeme {
  Token token;
  std::string_view text;  // of the source
};

// Nothing where a character starts no token. `source` outlives the lexemes; the last one is Token::end.
std::optional<std::vector<Lexeme>> lexemes(std::string_view source);

}  // namespace hexad::math
