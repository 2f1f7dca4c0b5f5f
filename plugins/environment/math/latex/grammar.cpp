#include "plugins/environment/math/latex/grammar.hpp"

#include <stdexcept>
#include <unordered_map>

namespace hexad::math {
namespace {

// Where PS.g4 recurses to the left, a repetition stands here: the trees lean to the left all the same.
// A line that begins with a space goes on with the rule above.
constexpr std::string_view kGrammar = R"(
math: membership end / semicolons end / set_relation end

membership: atoms ( in / assign ) plain_semicolons
semicolons: commas ( semicolon commas )*
plain_semicolons: plain_commas ( semicolon plain_commas )*
commas: element ( comma element )*
plain_commas: plain_element ( comma plain_element )*
element: either_sign / set_atom / relation
plain_element: either_sign / set_atom / expr
either_sign: expr plus_minus expr / plus_minus expr

relation: expr ( relation_sign expr )*
relation_sign: in / assign / equal / approx / lt / lte / gt / gte / unequal
equality: expr ( equal / assign ) expr

set_relation: set_claim ( ( subset / supset ) set_claim )*
set_claim: atoms ( in / notin / assign ) set_claim / set_minus
set_minus: set_union ( setminus set_union )*
set_union: set_intersection ( cup set_intersection )*
set_intersection: set_group ( cap set_group )*
set_group: lparen set_minus rparen / set_atom
set_atom: interval / literal_set / ordered_tuple / finite_set
interval: interval_open expr comma expr interval_close
interval_open: lbracket / lparen / lparen_visual / lbrack / lgroup
interval_close: rbracket / rparen / rparen_visual / rbrack / rgroup
literal_set: named_set / empty_set / lbrace rbrace
ordered_tuple: lparen semicolons rparen / lparen_visual semicolons rparen_visual / lbracket semicolons rbracket
finite_set: lbrace semicolons rbrace / lbrace_visual semicolons rbrace_visual / boxed lbrace semicolons rbrace

expr: mp ( ( add / sub ) mp )*
mp: unary ( mp_sign unary )*
mp_nofunc: unary_nofunc ( mp_sign unary_nofunc )*
mp_sign: mul / times / cdot / div / cmd_div / colon / mod
unary: ( add / sub ) unary / postfix+
unary_nofunc: ( add / sub ) unary_nofunc / postfix postfix_nofunc*
postfix: exp postfix_sign*
postfix_nofunc: exp_nofunc postfix_sign*
postfix_sign: bang / eval_at / transposed / degrees
eval_at: bar ( eval_sup / eval_sub / eval_sup eval_sub )
eval_sub: underscore lbrace ( expr / equality ) rbrace
eval_sup: caret lbrace ( expr / equality ) rbrace
exp: comp power*
exp_nofunc: comp_nofunc power*
power: caret ( atom / lbrace expr rbrace ) subexpr?

comp: group / formatted / normed / absolute / dotted / floored / ceiled / func / atom / fraction / binomial / matrix
 / det
comp_nofunc: group / formatted / normed / absolute / dotted / floored / ceiled / atom / fraction / binomial / matrix
 / det
group: lparen expr rparen / lgroup expr rgroup / lbrace expr rbrace / lbracket expr rbracket
 / lbrace_visual expr rbrace_visual / lbrace_cmd expr rbrace_cmd / lbrack expr rbrack
formatted: phantom lbrace expr rbrace / boxed lbrace expr rbrace
normed: norm expr norm
absolute: bar expr bar / lvert expr rvert / vert expr vert
dotted: langle expr rangle
floored: lfloor expr rfloor / llcorner expr lrcorner
ceiled: lceil expr rceil / ulcorner expr urcorner
fraction: frac lbrace expr rbrace lbrace expr rbrace
binomial: lbrace expr choose expr rbrace / binom lbrace expr rbrace lbrace expr rbrace
matrix: matrix_begin matrix_row ( row matrix_row )* row? matrix_end
 / array_begin matrix_row ( row matrix_row )* row? array_end
det: det_begin matrix_row ( row matrix_row )* row? det_end
matrix_row: expr ( column expr )*

name: letter / greek / other_symbol / accent
named_nopower: name subexpr?
named: name ( supexpr subexpr / subexpr supexpr / subexpr / supexpr )?
atoms: lparen named ( comma named )* rparen / named
atom: named / symbol / plain_number / percent_number / scientific / notation_e / differential / gamma
plain_number: number subexpr?
subexpr: underscore ( atom / lbrace ( expr / args ) rbrace )
supexpr: caret ( atom / lbrace expr rbrace )
args: expr comma args / expr

func: call_one / call_many / call_named / integrate / root / series / limit / exponential
call_one: one_name ( subexpr? supexpr? / supexpr? subexpr? ) ( lparen expr rparen / mp_nofunc )
one_name: function / gamma / operatorname lbrace function_name rbrace
call_many: many_name ( subexpr? supexpr? / supexpr? subexpr? ) ( lparen many_args rparen / mp_nofunc )
many_name: extreme / operatorname lbrace multi_name rbrace
many_args: expr / expr comma many_args
call_named: named_nopower supexpr? ( lparen call_args rparen / lbracket call_args rbracket
 / lbrace lparen call_args rparen rbrace / lbrace lbracket call_args rbracket rbrace )
call_args: atom / expr comma / expr comma args
integrate: integral ( subexpr supexpr / supexpr subexpr )? ( expr? differential / fraction / expr )
root: sqrt ( lbracket expr rbracket )? lbrace expr rbrace
series: ( sum / prod ) ( series_from supexpr / supexpr series_from ) mp
series_from: underscore lbrace equality rbrace
limit: lim limit_from mp
limit_from: underscore lbrace ( letter / greek / other_symbol ) to expr ( caret lbrace ( add / sub ) rbrace )? rbrace
exponential: exp_e supexpr?
)";

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

class Reader {
 public:
  Grammar read(std::string_view text) {
    std::vector<std::vector<std::string_view>> lines;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const auto words = words_of(text.substr(0, end));
      if (!words.empty() && (text[0] != ' ' || lines.empty())) lines.emplace_back();
      if (!words.empty()) lines.back().insert(lines.back().end(), words.begin(), words.end());
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (auto& line : lines) {
      line[0].remove_suffix(1);  // the colon
      names_[line[0]] = add(std::string(line[0]));
    }
    for (const auto& line : lines) {
      words_ = {line.begin() + 1, line.end()};
      at_ = 0;
      auto alternatives = choice();
      made_.rules[names_.at(line[0])].alternatives = std::move(alternatives);
    }
    return std::move(made_);
  }

 private:
  uint16_t add(std::string name) {
    made_.rules.push_back({std::move(name), {}});
    return static_cast<uint16_t>(made_.rules.size() - 1);
  }
  std::vector<std::vector<Symbol>> choice() {
    std::vector<std::vector<Symbol>> alternatives(1);
    for (; at_ < words_.size() && !words_[at_].starts_with(')'); ++at_) {
      if (words_[at_] == "/") {
        alternatives.emplace_back();
      } else {
        alternatives.back().push_back(item());
      }
    }
    return alternatives;
  }
  // A name or a bracket, and how often.
  Symbol item() {
    if (words_[at_] == "(") {
      ++at_;
      const uint16_t inner = add("");
      auto alternatives = choice();
      made_.rules[inner].alternatives = std::move(alternatives);
      return repeated({false, inner}, words_[at_].substr(1));
    }
    std::string_view word = words_[at_];
    std::string_view sign;
    if (const char last = word.back(); last == '?' || last == '*' || last == '+') {
      sign = word.substr(word.size() - 1);
      word.remove_suffix(1);
    }
    return repeated(named(word), sign);
  }
  Symbol named(std::string_view word) const {
    if (const auto rule = names_.find(word); rule != names_.end()) return {false, rule->second};
    if (const auto token = token_named(word)) return {true, static_cast<uint16_t>(*token)};
    throw std::logic_error("grammar of answers: no rule or token '" + std::string(word) + "'");
  }
  Symbol repeated(Symbol inner, std::string_view sign) {
    if (sign.empty()) return inner;
    const uint16_t rule = add("");
    const Symbol self{false, rule};
    if (sign == "?") made_.rules[rule].alternatives = {{inner}, {}};
    if (sign == "*") made_.rules[rule].alternatives = {{inner, self}, {}};
    if (sign == "+") {
      const Symbol more = repeated(inner, "*");
      made_.rules[rule].alternatives = {{inner, more}};
    }
    return self;
  }

  Grammar made_;
  std::unordered_map<std::string_view, uint16_t> names_;
  std::vector<std::string_view> words_;
  size_t at_ = 0;
};

}  // namespace

Grammar read_grammar(std::string_view text) { return Reader().read(text); }

const Grammar& grammar() {
  static const Grammar made = read_grammar(kGrammar);
  return made;
}

}  // namespace hexad::math
