#include "plugins/environment/math/latex/normalize.hpp"

#include "plugins/environment/math/boxes.hpp"
#include "plugins/environment/math/latex/rewrite.hpp"
#include "plugins/environment/math/latex/units.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

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

std::string normalize_latex(std::string_view text, bool last_box_only) {
  std::string result = box_contents(text, last_box_only);
  if (result.size() > kLongestLatex) throw TooMuch();
  result = without_units(plain_latex(std::move(result)));
  if (result.starts_with('.')) result = "0" + result;
  if (result == "0.5") result = "\\frac{1}{2}";
  return std::string(trimmed(with_operator_braces(std::move(result))));
}

}  // namespace hexad::math
