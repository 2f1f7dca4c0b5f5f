#include "plugins/environment/math/latex/lexer.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "lib/base/utf8.hpp"

namespace hexad::math {
namespace {

struct Spelling {
  Token token;
  std::string_view texts;  // separated by spaces
};

constexpr Spelling kSpellings[] = {
    {Token::transposed, "^T ^{T} '"},
    {Token::degrees, "^\\circ ^\\degree ^\\circle ^° ^{\\circ} ^{\\degree} ^{\\circle} ^{°}"},
    {Token::add, "+ ∔ ⊕ ⊞"},
    {Token::sub, "- − ∸"},
    {Token::mul, "* × ⋅ ⋄ ⊡ ∗ ⋆ ∘ ∙ ⊗ ⊠ ⋈ ⋉ ⋊"},
    {Token::div, "/ ÷ ∕ \\over"},
    {Token::lparen, "("},
    {Token::rparen, ")"},
    {Token::lparen_visual, "\\("},
    {Token::rparen_visual, "\\)"},
    {Token::lgroup, "\\lgroup"},
    {Token::rgroup, "\\rgroup"},
    {Token::lbrace, "{"},
    {Token::rbrace, "}"},
    {Token::lbrace_visual, "\\{"},
    {Token::rbrace_visual, "\\}"},
    {Token::lbrace_cmd, "\\lbrace"},
    {Token::rbrace_cmd, "\\rbrace"},
    {Token::lbracket, "["},
    {Token::rbracket, "]"},
    {Token::lbrack, "\\lbrack"},
    {Token::rbrack, "\\rbrack"},
    {Token::phantom, "\\phantom"},
    {Token::boxed, "\\boxed"},
    {Token::bar, "|"},
    {Token::lvert, "\\lvert"},
    {Token::rvert, "\\rvert"},
    {Token::vert, "\\vert"},
    {Token::norm, "\\|"},
    {Token::langle, "\\langle"},
    {Token::rangle, "\\rangle"},
    {Token::lfloor, "\\lfloor"},
    {Token::rfloor, "\\rfloor"},
    {Token::llcorner, "\\llcorner"},
    {Token::lrcorner, "\\lrcorner"},
    {Token::lceil, "\\lceil"},
    {Token::rceil, "\\rceil"},
    {Token::ulcorner, "\\ulcorner"},
    {Token::urcorner, "\\urcorner"},
    {Token::lim, "\\lim"},
    {Token::to, "\\to \\rightarrow \\Rightarrow \\longrightarrow \\Longrightarrow"},
    {Token::integral, "\\int"},
    {Token::sum, "\\sum"},
    {Token::prod, "\\prod"},
    {Token::function,
     "\\log \\ln \\exp \\sin \\cos \\tan \\csc \\sec \\cot \\arcsin \\arccos \\arctan \\arccsc \\arcsec \\arccot "
     "\\sinh "
     "\\cosh \\tanh \\arsinh \\arcosh \\artanh \\arcsinh \\arccosh \\arctanh \\floor \\ceil \\det"},
    {Token::gamma, "\\Gamma \\gamma"},
    {Token::extreme, "\\gcd \\lcm \\max \\min"},
    {Token::function_name,
     "arsinh arcsinh arcosh arccosh artanh arctanh floor ceil eye rank trace tr rref nullspace eig eigen diagonalize "
     "norm eigenvals eigenvalues eigenvects eigenvectors svd SVD cols rows"},
    {Token::multi_name, "gcd lcm zeros orth ortho orthogonal orthogonalize ones diag hstack vstack"},
    {Token::unread_name, "matrix pmatrix bmatrix vmatrix"},
    {Token::sqrt, "\\sqrt"},
    {Token::times, "\\times"},
    {Token::cdot, "\\cdot"},
    {Token::cmd_div, "\\div"},
    {Token::frac, "\\frac \\dfrac \\tfrac \\cfrac"},
    {Token::binom, "\\binom \\tbinom \\dbinom"},
    {Token::choose, "\\choose"},
    {Token::mod, "\\mod"},
    {Token::operatorname, "\\operatorname"},
    {Token::matrix_begin, "\\begin{matrix} \\begin{pmatrix} \\begin{bmatrix}"},
    {Token::matrix_end, "\\end{matrix} \\end{pmatrix} \\end{bmatrix}"},
    {Token::array_end, "\\end{array}"},
    {Token::det_begin, "\\begin{vmatrix}"},
    {Token::det_end, "\\end{vmatrix}"},
    {Token::column, "&"},
    {Token::row, "\\\\"},
    {Token::underscore, "_"},
    {Token::caret, "^"},
    {Token::colon, ":"},
    {Token::semicolon, ";"},
    {Token::comma, ","},
    {Token::exp_e, "e \\exponentialE"},
    {Token::notation_e, "E"},
    {Token::in, "\\in"},
    {Token::assign, "= ≡ ≣ ≟ ≎ ≏ ≐ ≑ ≒ ≓ ≔ ≕ ≖ ≗"},
    {Token::equal, "== \\equiv"},
    {Token::approx, "~= ≈ ≊ ≋ ≃ ≅ \\approx"},
    {Token::lt, "< ≪ ≺ ⋖ \\lt"},
    {Token::lte, "\\leq \\le \\leqslant ≤ ≦ ≲ ≾ <="},
    {Token::gt, "> ≫ ≻ ⋗ \\gt"},
    {Token::gte, "\\geq \\ge \\geqslant ≥ ≧ ≳ ≿ >="},
    {Token::unequal, "!= !== \\ne \\neq \\not\\equiv ≠ ≁ ≄ ≇ ≉ ≢"},
    {Token::bang, "!"},
    {Token::symbol, "\\partial \\infty \\$\\infty \\infty\\% \\infty%"},
    {Token::named_set, "\\mathbb{N} ℕ \\mathbb{Z} ℤ \\mathbb{Q} ℚ \\mathbb{R} ℝ \\mathbb{C} ℂ \\mathbb{P} ℙ"},
    {Token::cup, "\\cup ∪"},
    {Token::cap, "\\cap ∩"},
    {Token::setminus, "\\setminus ∖"},
    {Token::plus_minus, "\\pm ± ∓ \\mp"},
    {Token::empty_set, "\\emptyset ∅ \\{\\} \\lbrace\\rbrace"},
    {Token::supset, "\\supseteq ⊇"},
    {Token::subset, "\\subseteq ⊆"},
    {Token::notin, "\\notin ∉"},
    {Token::unused, ". <-> <=> \\leftrightarrow \\Leftrightarrow \\xrightarrow \\xRightarrow \\mathit"},
    {Token::greek,
     "\\alpha α \\beta β γ Γ \\delta δ \\Delta Δ \\epsilon ε \\varepsilon ϵ \\zeta ζ \\eta η \\theta θ \\Theta Θ "
     "\\vartheta "
     "ϑ \\iota ι \\kappa κ \\lambda λ \\Lambda Λ \\mu μ \\nu ν \\xi ξ \\Xi Ξ \\omicron ο \\pi π \\Pi Π \\varpi ϖ \\rho "
     "ρ "
     "\\varrho ϱ \\sigma σ \\Sigma Σ \\varsigma ς \\tau τ \\upsilon υ \\Upsilon Υ \\phi φ \\Phi Φ \\varphi ϕ \\chi χ "
     "\\psi ψ \\Psi Ψ \\omega ω \\Omega Ω"},
    {Token::other_symbol,
     "\\Bbbk \\wp \\nabla \\bigstar \\angle \\nexists \\diagdown \\measuredangle \\eth ℵ ℶ ℷ ℸ \\diagup "
     "\\sphericalangle \\clubsuit \\varnothing \\Diamond \\complement \\diamondsuit \\imath \\Finv \\triangledown "
     "\\heartsuit \\jmath \\Game \\triangle \\spadesuit \\ell \\hbar \\vartriangle \\hslash \\blacklozenge \\lozenge "
     "\\blacksquare \\mho \\blacktriangle \\sharp \\prime \\Im \\flat \\square \\backprime \\Re \\natural \\surd "
     "\\circledS"},
};

// What is read and dropped.
constexpr std::string_view kIgnored =
    "\\, \\thinspace \\: \\medspace \\; \\thickspace \\quad \\qquad \\! \\negthinspace \\negmedspace \\negthickspace "
    "\\$ \\vrule \\vcenter \\vbox \\vskip \\vspace \\hfil";

constexpr std::string_view kAccents =
    "\\acute \\bar \\overline \\breve \\check \\widecheck \\dot \\ddot \\grave \\hat \\tilde \\widetilde \\vec "
    "\\overrightarrow \\bm \\boldsymbol \\text \\textit \\textbf \\textnormal \\mathbb \\mathbin \\mathbf \\mathcal "
    "\\mathclap \\mathclose \\mathellipsis \\mathfrak \\mathinner \\mathit \\mathnormal \\mathop \\mathopen \\mathord "
    "\\mathpunct \\mathrel \\mathring \\mathrlap \\mathrm \\mathscr \\mathsf \\mathsterling \\mathtt \\mbox";

template <typename Visit>
void each_word(std::string_view words, const Visit& visit) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    visit(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

// Fixed spellings by text; longest() finds the longest at the start of a text.
class Dictionary {
 public:
  void add(std::string_view words, Token token) {
    each_word(words, [&](std::string_view word) {
      tokens_.emplace(word, token);
      const auto lead = static_cast<unsigned char>(word[0]);
      auto& lengths = lengths_[lead];
      if (std::find(lengths.begin(), lengths.end(), word.size()) == lengths.end()) lengths.push_back(word.size());
      std::sort(lengths.rbegin(), lengths.rend());
    });
  }
  std::optional<Lexeme> longest(std::string_view text) const {
    for (const size_t length : lengths_[static_cast<unsigned char>(text[0])]) {
      if (length > text.size()) continue;
      const auto found = tokens_.find(text.substr(0, length));
      if (found != tokens_.end()) return Lexeme{found->second, found->first.substr(0, length)};
    }
    return {};
  }

 private:
  std::unordered_map<std::string_view, Token> tokens_;
  std::array<std::vector<size_t>, 256> lengths_;
};

const Dictionary& dictionary() {
  static const Dictionary made = [] {
    Dictionary words;
    for (const Spelling& spelling : kSpellings) words.add(spelling.texts, spelling.token);
    return words;
  }();
  return made;
}
const Dictionary& ignored_words() {
  static const Dictionary made = [] {
    Dictionary words;
    words.add(kIgnored, Token::unused);
    return words;
  }();
  return made;
}
const Dictionary& accents() {
  static const Dictionary made = [] {
    Dictionary words;
    words.add(kAccents, Token::accent);
    return words;
  }();
  return made;
}

bool digit_at(std::string_view text, size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }
bool letter_at(std::string_view text, size_t at) {
  return at < text.size() && ((text[at] >= 'a' && text[at] <= 'z') || (text[at] >= 'A' && text[at] <= 'Z'));
}
bool blank_at(std::string_view text, size_t at) {
  return at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n');
}

size_t number_length(std::string_view text) {
  size_t i = 0;
  while (digit_at(text, i)) ++i;
  if (i < text.size() && text[i] == '.' && digit_at(text, i + 1)) {
    for (++i; digit_at(text, i);) ++i;
  }
  return i;
}

// 12, 1.5E-3, 50\%.
std::optional<Lexeme> numeric(std::string_view text) {
  const size_t length = number_length(text);
  if (length == 0) return {};
  const size_t blank = length + blank_at(text, length);
  if (text.substr(blank).starts_with("\\%")) return Lexeme{Token::percent_number, text.substr(0, blank + 2)};
  if (text.substr(blank).starts_with('%')) return Lexeme{Token::percent_number, text.substr(0, blank + 1)};
  if (length < text.size() && text[length] == 'E') {
    size_t i = length + 1;
    i += i < text.size() && (text[i] == '+' || text[i] == '-');
    const size_t exponent = i;
    while (digit_at(text, i)) ++i;
    if (i > exponent) return Lexeme{Token::scientific, text.substr(0, i)};
  }
  return Lexeme{Token::number, text.substr(0, length)};
}

// dx, d\theta: the longest reading of letters behind a backslash.
size_t differential_length(std::string_view text) {
  if (text[0] != 'd') return 0;
  size_t i = 1;
  while (blank_at(text, i)) ++i;
  if (letter_at(text, i)) return i + 1;
  if (i >= text.size() || text[i] != '\\' || !letter_at(text, i + 1)) return 0;
  for (++i; letter_at(text, i);) ++i;
  return i;
}

// \text{..}, up to the first closing brace.
size_t accent_length(std::string_view text) {
  const auto command = accents().longest(text);
  if (!command) return 0;
  size_t i = command->text.size();
  i += blank_at(text, i);
  if (i >= text.size() || text[i] != '{') return 0;
  const size_t close = text.find('}', i);
  return close == text.npos ? 0 : close + 1;
}

size_t array_length(std::string_view text) {
  constexpr std::string_view kBegin = "\\begin{array}{";
  if (!text.starts_with(kBegin)) return 0;
  size_t i = kBegin.size();
  while (i < text.size() && (text[i] == 'c' || text[i] == 'l' || text[i] == 'r')) ++i;
  return i < text.size() && text[i] == '}' ? i + 1 : 0;
}

Lexeme longest_lexeme(std::string_view text) {
  Lexeme best{Token::end, text.substr(0, 0)};
  const auto offer = [&](Token token, size_t length) {
    if (length > best.text.size()) best = {token, text.substr(0, length)};
  };
  if (const auto word = dictionary().longest(text)) {
    const bool blank = (word->token == Token::greek || word->token == Token::other_symbol) &&
                       text.substr(word->text.size()).starts_with(' ');
    offer(word->token, word->text.size() + blank);
  }
  // \gamma is a function where no space follows, and a letter where one does.
  for (const std::string_view gamma : {"\\gamma ", "\\Gamma "}) {
    if (text.starts_with(gamma)) offer(Token::greek, gamma.size());
  }
  if (const auto number = numeric(text)) offer(number->token, number->text.size());
  offer(Token::differential, differential_length(text));
  offer(Token::accent, accent_length(text));
  offer(Token::array_begin, array_length(text));
  if (letter_at(text, 0)) offer(Token::letter, 1);
  return best;
}

}  // namespace

std::optional<Token> token_named(std::string_view name) {
  static const std::unordered_map<std::string_view, Token> names = {
#define HEXAD_MATH_TOKEN(token) {#token, Token::token},
      HEXAD_MATH_TOKENS(HEXAD_MATH_TOKEN)
#undef HEXAD_MATH_TOKEN
  };
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::vector<Lexeme>> lexemes(std::string_view source) {
  std::vector<Lexeme> result;
  for (std::string_view rest = source; !rest.empty();) {
    if (blank_at(rest, 0)) {
      rest.remove_prefix(1);
      continue;
    }
    const Lexeme lexeme = longest_lexeme(rest);
    const auto ignored = ignored_words().longest(rest);
    if (ignored && ignored->text.size() >= lexeme.text.size()) {
      rest.remove_prefix(ignored->text.size());
      continue;
    }
    if (lexeme.text.empty()) return {};
    result.push_back(lexeme);
    rest.remove_prefix(lexeme.text.size());
  }
  result.push_back({Token::end, {}});
  return result;
}

}  // namespace hexad::math
