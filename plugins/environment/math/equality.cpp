#include "plugins/environment/math/equality.hpp"

#include <algorithm>

#include "plugins/environment/math/number/real_set.hpp"

namespace hexad::math {
namespace {

bool is_equation_sign(const Node& a) { return a.is(Kind::relation) && a.name == "=="; }
bool is_equation(const Node& a) {
  if (is_equation_sign(a)) return true;
  return a.is(Kind::conjunction) &&
         std::all_of(a.args.begin(), a.args.end(), [](const auto& one) { return is_equation_sign(*one); });
}
const Node& first_relation(const Node& a) { return a.is(Kind::conjunction) ? *a.args.front() : a; }
const Node& last_relation(const Node& a) { return a.is(Kind::conjunction) ? *a.args.back() : a; }
bool is_assignment(const Node& a) { return is_equation(a) && only_symbols(*first_relation(a).args[0]); }

std::string lowercase_name(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return name;
}

// As text, where a symbol's name could be that.
std::string text_of(const Node& a) {
  if (a.is(Kind::symbol) || a.is(Kind::constant)) return a.name;
  if (a.is(Kind::rational)) return a.value.str();
  return {};
}

// "abc" is a product of letters where it was no \text{abc}.
std::optional<std::string> letters_of(const Node& a) {
  if (!a.is(Kind::mul)) return {};
  std::string letters;
  for (const Expression& arg : a.args) {
    if (!arg->is(Kind::symbol) && !arg->is_constant("E")) return {};
    letters += arg->is(Kind::symbol) ? arg->name : "e";
  }
  return lowercase_name(letters);
}

bool equal_symbols(const Node& a, const Node& b) {
  if (a.is(Kind::symbol) && b.is(Kind::symbol)) {
    const auto comparable = [](const std::string& name) { return name.size() > 1 ? lowercase_name(name) : name; };
    return comparable(a.name) == comparable(b.name);
  }
  const Node &name = a.is(Kind::symbol) ? a : b, &other = a.is(Kind::symbol) ? b : a;
  if (other.is_constant("E") && lowercase_name(name.name) == "e") return true;
  if (const auto letters = letters_of(other)) return lowercase_name(name.name) == *letters;
  return !text_of(other).empty() && text_of(name) == text_of(other);
}

}  // namespace

bool is_relation(const Node& a) { return a.is(Kind::relation) || a.is(Kind::conjunction); }
bool is_value(const Node& a) { return !a.is_set() && !a.is(Kind::tuple) && !is_relation(a) && !a.is(Kind::statement); }

bool equal(const Expression& gold_given, const Expression& answer_given) {
  Expression gold = gold_given, answer = answer_given;
  const bool gold_assigns = is_assignment(*gold), answer_assigns = is_assignment(*answer);
  const bool gold_equates = is_equation(*gold), answer_equates = is_equation(*answer);
  // Of "x = 2 * 3 = 6" the ends count.
  const auto ends = [](const Node& a) {
    return node(Kind::relation, {first_relation(a).args[0], last_relation(a).args[1]}, "==");
  };
  if (gold_assigns) gold = ends(*gold);
  if (answer_assigns) answer = ends(*answer);
  if (answer_equates && !gold_equates) {
    answer = last_relation(*answer).args[1];
  } else if (gold_assigns && !answer_equates) {
    gold = last_relation(*gold).args[1];
  }
  if (gold->is_constant("nan") || gold->is_constant("zoo") || gold->is(Kind::statement)) {
    return gold->is(Kind::statement) && gold->name != "subset" && same(*gold, *answer);
  }
  if (same(*gold, *answer)) return true;
  if (is_relation(*gold) && answer->is_set()) {
    const auto solutions = solution_set(*gold), said = real_set(*answer);
    return solutions && said && equal_real_sets(*solutions, *said);
  }
  if (is_relation(*gold) && is_relation(*answer)) return equal_relations(gold, answer);
  const auto collection = [](const Node& a) { return a.is_set() || a.is(Kind::tuple); };
  if (collection(*gold) || collection(*answer)) return equal_sets(gold, answer);
  if (gold->is(Kind::symbol) || answer->is(Kind::symbol)) return equal_symbols(*gold, *answer);
  if (is_relation(*gold) || is_relation(*answer) || answer->is(Kind::statement)) return false;
  return equal_values(gold, answer);
}

}  // namespace hexad::math
