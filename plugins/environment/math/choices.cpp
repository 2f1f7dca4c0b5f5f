#include "plugins/environment/math/choices.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lib/base/utf8.hpp"
#include "plugins/environment/math/latex/rewrite.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

template <typename Pairs>
std::string with_replacements(std::string text, const Pairs& pairs) {
  for (const auto& [from, to] : pairs) {
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  }
  return text;
}

std::string valid(std::string_view text) {
  std::string buffer;
  return std::string(valid_utf8(text, buffer));
}

// Markdown and LaTeX that may stand between "Answer:" and the letter.
std::string without_marks(std::string_view text) {
  static constexpr Pair kMarks[] = {{"**", ""},       {"$\\boxed{", ""}, {"}$", ""},        {"\\$", ""},
                                    {"$\\text{", ""}, {"$", ""},         {"\\mathrm{", ""}, {"\\{", ""},
                                    {"\\text", ""},   {"\\(", ""},       {"\\mathbf{", ""}, {"{", ""},
                                    {"\\boxed", ""}};
  return with_replacements(valid(text), kMarks);
}

// What announces the letter, by language; "~" is white space or none. The first of them that is found decides.
constexpr std::string_view kAnswerWords[] = {"Answer~:",
                                             "Answer~:\u200B\u200B\u200B\u200B\u200B\u200B",
                                             "উত্তর~:",
                                             "उत्तर~:",
                                             "উত্তরঃ",
                                             "Antwort~:",
                                             "답변~:",
                                             "정답~:",
                                             "답~:",
                                             "答案~：",
                                             "答案~:",
                                             "答~：",
                                             "答~:",
                                             "答复~：",
                                             "答曰~：",
                                             "الإجابة:",
                                             "الجواب:",
                                             "إجابة:",
                                             "الإجابة النهائية:",
                                             "الإجابة الصحيحة:",
                                             "الإجابة الصحيحة هي:",
                                             "الإجابة هي:",
                                             "الجواب النهائي:",
                                             "Respuesta~:",
                                             "Risposta~:",
                                             "答え~:",
                                             "答え~：",
                                             "回答~:",
                                             "回答~：",
                                             "解答~:",
                                             "Jawaban~:",
                                             "Réponse~:",
                                             "Resposta~:",
                                             "Jibu~:",
                                             "Idahun~:",
                                             "Ìdáhùn~:",
                                             "Idáhùn~:",
                                             "Àmọ̀nà~:",
                                             "Àdáhùn~:",
                                             "Ànúgọ~:",
                                             "Àṣàyàn~:"};

std::string latin_letter(std::string letter) {
  static constexpr Pair kLetters[] = {{"أ", "A"}, {"ب", "B"}, {"ج", "C"},  {"د", "D"},  {"অ", "A"},  {"ব", "B"},
                                      {"ড", "C"}, {"ঢ", "D"}, {"Ａ", "A"}, {"Ｂ", "B"}, {"Ｃ", "C"}, {"Ｄ", "D"}};
  return with_replacements(std::move(letter), kLetters);
}

std::string minerva_form(std::string_view answer) {
  static constexpr Pair kSubstitutions[] = {
      {"an ", ""}, {"a ", ""},       {".$", "$"},           {"\\$", ""},          {"\\ ", ""},
      {" ", ""},   {"mbox", "text"}, {",\\text{and}", ","}, {"\\text{and}", ","}, {"\\text{m}", "\\text{}"}};
  static constexpr std::string_view kRemoved[] = {
      "square",     "ways",       "integers",  "dollars",      "mph",
      "inches",     "hours",      "km",        "units",        "\\ldots",
      "sue",        "points",     "feet",      "minutes",      "digits",
      "cents",      "degrees",    "cm",        "gm",           "pounds",
      "meters",     "meals",      "edges",     "students",     "childrentickets",
      "multiples",  "\\text{s}",  "\\text{.}", "\\text{\ns}",  "\\text{}^2",
      "\\text{}^3", "\\text{\n}", "\\text{}",  "\\mathrm{th}", "^\\circ",
      "^{\\circ}",  "\\;",        ",\\!",      "{,}",          "\"",
      "\\dots"};
  static const Rewrite kForms[] = {{R"((?:.*?)\$(.*?)\$(?:.*))", "$$1$"}, {R"(\\text\{(.*?)\})", "$1"},
                                   {R"(\\textbf\{(.*?)\})", "$1"},        {R"(\\overline\{(.*?)\})", "$1"},
                                   {R"(\\boxed\{(.*)\})", "$1"},          {R"(frac([^{])(.))", "frac{$1}{$2}"},
                                   {R"(sqrt([^{]))", "sqrt{$1}"}};
  std::string form = valid(answer.substr(answer.rfind('=') + 1));
  form = with_replacements(std::move(form), kSubstitutions);
  for (const std::string_view removed : kRemoved)
    form = with_replacements(std::move(form), std::array{Pair{removed, ""}});
  for (const Rewrite& rewrite : kForms) form = rewrite(form);
  std::erase(form, '$');
  std::string digits = form;
  std::erase(digits, ',');
  const bool number =
      !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return std::string(trimmed(number ? digits : form));
}

}  // namespace

bool english_choice_is(std::string_view gold, std::string_view response, std::string* answer) try {
  static const Rewrite pattern(R"((?i)Answer\s*:[ \t]*([A-Z]))", "");
  const auto letters = pattern.first_groups(without_marks(response));
  if (letters.empty()) return false;
  if (answer) *answer = letters[0];
  return letters[0] == without_marks(gold);
} catch (const TooMuch&) {
  return false;
}

bool multilingual_choice_is(std::string_view gold, std::string_view response, std::string* answer) try {
  static const std::vector<Rewrite> patterns = [] {
    std::vector<Rewrite> made;
    for (const std::string_view word : kAnswerWords) {
      const std::string spaced = with_replacements(std::string(word), std::array{Pair{"~", "\\s*"}});
      made.emplace_back("(?i)" + spaced + "[ \t]*([A-D]|[أ-د]|[অবডঢ]|[Ａ-Ｄ])", "");
    }
    return made;
  }();
  const std::string plain = without_marks(response);
  for (const Rewrite& pattern : patterns) {
    const auto letters = pattern.first_groups(plain);
    if (letters.empty()) continue;
    const std::string letter = latin_letter(letters[0]);
    if (answer) *answer = letter;
    return letter == gold;
  }
  return false;
} catch (const TooMuch&) {
  return false;
}

bool dapo_answer_is(std::string_view gold, std::string_view response, std::string* answer) try {
  static const Rewrite pattern(R"((?i)Answer\s*:\s*([^\n]+))", "");
  constexpr size_t kLooksAt = 300;
  const std::u32string all = wide(response);
  const auto answers =
      pattern.first_groups(narrow(std::u32string_view(all).substr(all.size() - std::min(all.size(), kLooksAt))));
  const std::string got = minerva_form(answers.empty() ? "[INVALID]" : answers.back());
  if (answer && !answers.empty()) *answer = got;
  return got == minerva_form(gold);
} catch (const TooMuch&) {
  return false;
}

}  // namespace hexad::math
