// The rules are those of latex2sympy2_extended 1.11 (math_normalization.py): its defaults without the splitting of
// equations.
#include <algorithm>
#include <optional>
#include <vector>

#include "plugins/environment/math/latex/latex.hpp"
#include "plugins/environment/math/latex/rewrite.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

// Where the brace that opens at `open` closes before `limit`.
std::optional<size_t> closing_brace(std::string_view text, size_t open, size_t limit) {
  size_t depth = 1;
  for (size_t i = open + 1; i < limit; ++i) {
    depth += text[i] == '{';
    if (text[i] == '}' && --depth == 0) return i;
  }
  return {};
}

bool joined_boxes(std::string_view between, bool same) {
  static const Rewrite separator(R"(\b(?:and|or)\b|,|;)", "");
  const size_t length = wide(between).size();
  return length < 10 || (!same && length < 70 && separator.found_in(between));
}

// The words that latex2sympy2_extended takes for units, odd ones included; "." is any character, as there.
constexpr std::string_view kUnits =
    " m east|Surface|a . m|ab|acre|am|apple|are|bc|by|cc|cent|children ticket|cm 2|cm|coin|cu . m|cu cm|cube|cubic|c|"
    "day|decrease|degree|deg|digit|dm|d|east|edge|excess|feet|ft|gain|gallon|gal|gm|g|hectare|hour|hr|h|inches|inch|"
    "increase|integerpoint|kg|kmh|kmph|km|lb|less|liter|litre|loss|lt|l|man|mark|meal|men|meter|metre|mile|minute|minw|"
    "min|mm|monkey|month|more|mph|mp|mtr|mt|multiple|m square|m|no change|noon|number|ohm|o|p . m|per|pi sq m|pie|pm|"
    "pound|prime|profit of rs|profit|pure|[a-hq] .|ratio|rd|rise|rounds|rs .|rs|rupee|second|sec|soldier|sq . m|"
    "sq inch|sq m|square|sq|student|sue|st|s .|s|th|tile|toy|t|unit|v â € ™|way|west|woman|women|yard|year|yr|° f|"
    "π r 2|∏ cm ³";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

std::string without_delimiter_commands(const std::string& text) {
  static const Rewrite left(
      R"(\\m?left(\\\{|\{|\\?\||\[|\(|\\(?:rbracl|lgroup|lbrace|lbrack|l?vert|lceil|lfloor|langle|[lu]lcorner)))",
      "$1");
  static const Rewrite right(
      R"(\\m?right(\\\}|\}|\\?\||\]|\)|\\(?:rbrack|rgroup|rbrace|r?vert|rceil|rfloor|rangle|[lu]rcorner)))", "$1");
  return right(left(text));
}

// Words and commands with one meaning and several spellings.
std::string with_one_spelling(const std::string& text) {
  static const Rewrite rewrite({
      {R"(\\math(?:rm|it|bf))", "\\text"},
      {R"(\\text(?:normal|bf|it|rm))", "\\text"},
      {R"(\\[dtc]frac)", "\\frac"},
      {R"(\s\.)", " 0."},
      {R"(\{\.)", "{0."},
      {R"(~=)", "\\approx"},
      {R"(\s*\{\s*,\s*\})", ","},
      {R"((?<![a-zA-Z]),?\s*(?:and|or)(?![a-zA-Z]))", ","},
      {R"(,?\s*\\text\{\s*(?:and|or)\s*\})", ","},
      {R"((?<!\\)\\\s)", " "},
      {R"(infinity)", "\\infty"},
      {R"(,?\\ldots)", " "},
      {R"(\s*\bpercentage\b)", "\\%"},
      {R"(\\text\{percentage\})", "%"},
      {R"(\s*\bpercent\b)", "\\%"},
      {R"(\\text\{percent\})", "%"},
      {R"(\s*\bpct\b)", "\\%"},
      {R"(\\text\{pct\})", "%"},
      {R"((?<!\\)inf(?!inity))", "\\infty"},
      {R"( sqrt)", "\\sqrt"},
  });
  return rewrite(text);
}

std::string plain_latex(std::string text) {
  static const Rewrite permutation(R"(\(([a-zA-Z0-9+\-*/\\ ]+?)\)_\{([a-zA-Z0-9+\-*/\\ ]+?)\})",
                                   "\\frac{($1)!}{(($1)-($2))!}");
  static const Rewrite removed(R"(\\mathrm\{th\}|\\!\s*|\\text\s*\{\s*\}|\\\$|\$|(?<!\\)["']|\\displaystyle)", "");
  static const Rewrite doubled(R"(\\\\(?=[a-zA-Z]))", "\\");
  text = replaced(std::move(text), "\\mathrm{T}", "T");
  text = replaced(replaced(std::move(text), "\\mathrm{d}", "d"), "{\\rm d}", "d");
  text = replaced(std::move(text), "\\left[\\begin{matrix}", "\\begin{bmatrix}");
  text = replaced(std::move(text), "\\end{matrix}\\right]", "\\end{bmatrix}");
  text = with_one_spelling(removed(permutation(without_delimiter_commands(text))));
  text = replaced(replaced(std::move(text), "\n", " "), "\t", " ");
  return text.find("matrix") == text.npos ? doubled(text) : text;
}

// The first character of what follows each command becomes its argument in braces.
std::string with_root_braces(const std::string& text) {
  std::string result;
  size_t at = 0, next;
  while ((next = text.find("\\sqrt", at)) != text.npos) {
    result.append(text, at, next + 5 - at);
    at = next + 5;
    if (text.find("\\sqrt", at) == at) continue;
    while (at < text.size() && trimmed(std::string_view(text).substr(at, 1)).empty()) ++at;
    if (at >= text.size() || text[at] == '{' || text[at] == '[' || text.compare(at, 5, "\\sqrt") == 0) continue;
    const std::u32string rest = wide(std::string_view(text).substr(at, 4));
    const std::string argument = narrow(rest.substr(0, 1));
    result += "{" + argument + "}";
    at += argument.size();
  }
  return result.append(text, at);
}

// \frac12 and \frac1{2}: two characters, or one and a group. A \frac with less behind it leaves the text as it is.
std::string with_fraction_braces(const std::string& text) {
  const size_t first = text.find("\\frac");
  if (first == text.npos) return text;
  std::string result = text.substr(0, first);
  for (size_t at = first; at != text.npos;) {
    const size_t next = text.find("\\frac", at + 5);
    std::u32string rest = wide(std::string_view(text).substr(at + 5, next == text.npos ? next : next - at - 5));
    rest.erase(0, std::min(rest.find_first_not_of(U" \t\r\n\f\v"), rest.size()));
    result += "\\frac";
    if (!rest.empty() && rest[0] == '{') {
      result += narrow(rest);
    } else if (rest.size() < 2) {
      return text;
    } else {
      result += "{" + narrow(rest.substr(0, 1)) + "}";
      result +=
          rest[1] == '{' ? narrow(rest.substr(1)) : "{" + narrow(rest.substr(1, 1)) + "}" + narrow(rest.substr(2));
    }
    at = next;
  }
  return result;
}

std::string with_operator_braces(std::string text) {
  static const std::vector<Rewrite> rewrites = {
      Rewrite(R"(\^\s?\((.*?)\))", "^{$1}"),
      Rewrite(R"(sqrt\s?\((.*?)\))", "\\sqrt{$1}"),
      Rewrite(R"(\\frac\s?(\d)\s?(\d+))", "\\frac{$1}{$2}"),
      Rewrite(R"(\\log_\s?(\d)\s?(\d+))", "\\log_{$1}{$2}"),
      Rewrite(R"(\\frac\s?\{(.*?)\}\s?(\d))", "\\frac{$1}{$2}"),
      Rewrite(R"(\\frac\s?(\d)\s?\{(.*?)\})", "\\frac{$1}{$2}"),
      Rewrite(R"(\\sqrt\s?(\d))", "\\sqrt{$1}"),
  };
  static const Rewrite integers(R"(\A(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)\z)", "\\frac{$1}{$2}");
  for (const Rewrite& rewrite : rewrites) text = rewrite(text);
  return integers(with_fraction_braces(with_root_braces(replaced(std::move(text), " sqrt", "\\sqrt"))));
}

}  // namespace

std::string box_contents(std::string_view text, bool last_only) {
  std::vector<std::string> contents;  // from the last to the first
  std::optional<size_t> later;        // where the box found before this one starts
  size_t limit = text.size();
  size_t boxed = text.rfind("\\boxed"), fbox = text.rfind("\\fbox");
  while (limit > 0) {
    if (boxed != text.npos && boxed >= limit) boxed = text.substr(0, limit).rfind("\\boxed");
    if (fbox != text.npos && fbox >= limit) fbox = text.substr(0, limit).rfind("\\fbox");
    if (boxed == text.npos && fbox == text.npos) break;
    const bool is_boxed = fbox == text.npos || (boxed != text.npos && boxed > fbox);
    const size_t start = is_boxed ? boxed : fbox;
    size_t open = start + (is_boxed ? 6 : 5);
    while (open < limit && trimmed(text.substr(open, 1)).empty()) ++open;
    if (open >= limit) break;
    const auto close = text[open] == '{' ? closing_brace(text, open, limit) : std::nullopt;
    if (!close) {
      if (contents.empty()) contents.emplace_back(text.substr(open));
      break;
    }
    std::string content(trimmed(text.substr(open + 1, *close - open - 1)));
    if (last_only && later) {
      const bool same = !contents.empty() && contents.back() == content;
      if (!joined_boxes(text.substr(*close + 1, *later - *close - 1), same)) break;
    }
    if (contents.empty() || contents.back() != content) contents.push_back(std::move(content));
    later = start;
    limit = start;
  }
  if (contents.empty()) return std::string(text);
  std::string joined;
  for (size_t i = contents.size(); i-- > 0;) joined += contents[i] + (i ? "," : "");
  return joined;
}

std::string without_units(const std::string& text) {
  static const Rewrite last_words(R"(\\(?:text|mbox)\{.*?\}(?:\^\d|\{\^\d\})?$)", "");
  static const std::string pattern = "(\\d|\\}|\\s)\\s*(?:" + std::string(kUnits) + ")(?:s|es)?\\s*$";
  static const Rewrite unit(pattern, "$1");
  std::string result = text;
  const std::string without_words(trimmed(last_words(text)));
  if (!without_words.empty()) result = without_words;
  for (int i = 0; i < 2; ++i) {
    std::string shorter = unit(result);
    if (!shorter.empty()) result = std::move(shorter);
  }
  return result;
}

std::string normalize_latex(std::string_view text, bool last_box_only) {
  std::string result = box_contents(text, last_box_only);
  if (result.size() > kLongestLatex) throw TooMuch();
  result = without_units(plain_latex(std::move(result)));
  if (result.starts_with('.')) result = "0" + result;
  if (result == "0.5") result = "\\frac{1}{2}";
  return std::string(trimmed(with_operator_braces(std::move(result))));
}

}  // namespace hexad::math
