#include "plugins/environment/math/verify.hpp"

#include "plugins/environment/math/candidates.hpp"
#include "plugins/environment/math/equality.hpp"
#include "plugins/environment/math/latex/latex.hpp"
#include "plugins/environment/math/latex/rewrite.hpp"
#include "plugins/environment/math/number/arithmetic.hpp"
#include "plugins/environment/math/number/wide.hpp"

namespace hexad::math {
namespace {

constexpr size_t kLongestText = 1 << 20;  // code points of a response that are looked at: the last ones
constexpr size_t kMostTried = 64;         // candidates that are read

Reading read_plain_number(const Candidate& candidate) {
  std::string integer = narrow(candidate.integer), decimal = narrow(candidate.decimal);
  std::erase(integer, ',');
  std::erase(integer, ' ');
  integer.erase(0, std::min(integer.find_first_not_of('0'), integer.size()));
  if (integer.empty()) integer = "0";
  if (decimal.starts_with(',')) decimal[0] = '.';
  // Python reads no "-05".
  const bool padded =
      integer.size() > 2 && integer.starts_with("-0") && integer.find_first_not_of("-0") != integer.npos;
  Reading reading{nullptr, integer + decimal};
  if (padded && decimal.empty()) throw TooMuch();
  reading.expression = read_number(reading.text);
  if (!reading.expression) throw TooMuch();
  if (candidate.percent) reading.expression = percentage(reading.expression);
  return reading;
}

// What exceeds a bound cannot be read.
Reading read_part(const LatexPart& part) {
  Reading reading;
  try {
    reading.text = normalize_latex(narrow(part.text), part.bare_box);
    reading.expression = read_latex(reading.text);
  } catch (const TooMuch&) {
    return reading;
  }
  if (reading.expression && part.percent) reading.expression = percentage(reading.expression);
  return reading;
}

// Several environments are a set, if all can be read.
Reading read_latex_parts(const Candidate& candidate) {
  Reading first = read_part(candidate.parts[0]);
  if (candidate.parts.size() == 1) return first;
  std::vector<Expression> members;
  std::string text;
  bool all = true;
  for (size_t i = 0; i < candidate.parts.size(); ++i) {
    const Reading one = i == 0 ? first : read_part(candidate.parts[i]);
    text += (i ? " and " : "") + one.text;
    all = all && one.expression;
    if (!all) continue;
    if (one.expression->is(Kind::finite_set)) {
      members.insert(members.end(), one.expression->args.begin(), one.expression->args.end());
    } else {
      members.push_back(one.expression);
    }
  }
  return all ? Reading{finite_set(members), text} : first;
}

Reading read_candidate(const Candidate& candidate) {
  if (candidate.kind == Candidate::Kind::number) return read_plain_number(candidate);
  if (candidate.kind == Candidate::Kind::latex) return read_latex_parts(candidate);
  return {read_arithmetic(candidate.text), narrow(candidate.text)};
}

}  // namespace

Reading read_answer(std::string_view text, bool plain) {
  const std::u32string whole = wide(text);
  const std::u32string_view looked_at =
      std::u32string_view(whole).substr(whole.size() - std::min(whole.size(), kLongestText));
  Reading result;
  size_t tried = 0;
  for (const Anchor anchor : kAnchors) {
    for (const Candidate& candidate : candidates(looked_at, anchor, plain)) {
      if (++tried > kMostTried) throw TooMuch();
      Reading reading = read_candidate(candidate);
      if (result.text.empty()) result.text = reading.text;
      if (!reading.expression) continue;
      result.expression = reading.expression;
      return result;
    }
  }
  return result;
}

bool verify(std::string_view gold, std::string_view response, std::string* answer) {
  try {
    const Reading got = read_answer(response, true);
    if (answer) *answer = trimmed(got.text);
    const Reading want = read_answer("\\boxed{" + std::string(gold) + "}", false);
    const std::string_view a = trimmed(want.text), b = trimmed(got.text);
    if (!a.empty() && a == b) return true;
    return want.expression && got.expression && equal(want.expression, got.expression);
  } catch (const TooMuch&) {
    return false;
  }
}

}  // namespace hexad::math
