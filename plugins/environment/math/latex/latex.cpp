#include "plugins/environment/math/latex/latex.hpp"

#include "plugins/environment/math/latex/reader.hpp"
#include "plugins/environment/math/latex/rewrite.hpp"

namespace hexad::math {
namespace {

// Texts in which letters need not be real.
bool looks_complex(std::string_view latex) {
  static const Rewrite pattern(R"(\\mathbb\{C\}|\\i\b|\bi\b|\\text\{i\}|\\mathrm\{i\}|\\imath\b|\\det|)"
                               R"(\\operatorname\{(?:tr|rank|Re|Im)\}|\\text\{(?:rank|Re|Im)\}|\\(?:arg|Re|Im)\{)",
                               "");
  return pattern.found_in(latex);
}

// The last side of a chain of more than two, if no list is about.
std::string_view last_side(std::string_view latex) {
  if (latex.find_first_of(",;") != latex.npos) return latex;
  size_t sides = 1, last = 0;
  for (size_t i = 0; i < latex.size(); ++i) {
    if (latex[i] != '=' || (i > 0 && std::string_view("\\<!>").find(latex[i - 1]) != std::string_view::npos)) continue;
    ++sides;
    last = i + 1;
  }
  return sides > 2 ? latex.substr(last) : latex;
}

Expression read_once(std::string_view latex) {
  try {
    return LatexReader(latex, !looks_complex(latex)).read();
  } catch (const Unreadable&) {
    return nullptr;
  }
}

}  // namespace

Expression read_latex(std::string_view normalized) {
  if (auto whole = read_once(normalized)) return whole;
  const std::string_view side = last_side(normalized);
  return side.size() == normalized.size() ? nullptr : read_once(side);
}

}  // namespace hexad::math
