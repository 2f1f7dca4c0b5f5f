#include <algorithm>

#include "plugins/environment/math/equality.hpp"
#include "plugins/environment/math/number/real_set.hpp"

namespace hexad::math {
namespace {

bool equal_in_order(const std::vector<Expression>& gold, const std::vector<Expression>& answer) {
  if (gold.size() != answer.size()) return false;
  for (size_t i = 0; i < gold.size(); ++i) {
    if (!equal(gold[i], answer[i])) return false;
  }
  return true;
}

// Each has a partner of its own. Members of sets are compared by value where letters alone would not be.
bool equal_in_any_order(const std::vector<Expression>& gold, std::vector<Expression> answer) {
  if (gold.size() != answer.size()) return false;
  for (const Expression& one : gold) {
    const auto partner = std::find_if(answer.begin(), answer.end(), [&](const auto& other) {
      return equal(one, other) || (is_value(*one) && is_value(*other) && equal_values(one, other));
    });
    if (partner == answer.end()) return false;
    answer.erase(partner);
  }
  return true;
}

bool equal_lists(const Node& gold, const Node& answer) {
  return gold.is(Kind::tuple) ? equal_in_order(gold.args, answer.args) : equal_in_any_order(gold.args, answer.args);
}

bool is_list(const Node& a) { return a.is(Kind::finite_set) || a.is(Kind::tuple); }
// "(1,2)" may have been a pair.
bool may_be_pair(const Node& a) { return a.is(Kind::interval) && a.left_open && a.right_open; }

}  // namespace

bool equal_sets(const Expression& gold_given, const Expression& answer_given) {
  const auto as_collection = [](const Expression& a) {
    return a->is_set() || a->is(Kind::tuple) ? a : node(Kind::finite_set, {a});
  };
  const Expression gold = as_collection(gold_given), answer = as_collection(answer_given);
  if (gold->is(Kind::interval) && answer->is(Kind::interval)) {
    return gold->left_open == answer->left_open && gold->right_open == answer->right_open &&
           equal(gold->args[0], answer->args[0]) && equal(gold->args[1], answer->args[1]);
  }
  if (same(*gold, *answer)) return true;
  if (is_list(*gold) && is_list(*answer)) return equal_lists(*gold, *answer);
  if (may_be_pair(*gold) && is_list(*answer) && answer->args.size() == 2)
    return equal_in_order(gold->args, answer->args);
  if (may_be_pair(*answer) && is_list(*gold) && gold->args.size() == 2) return equal_lists(*gold, *answer);
  const auto a = real_set(*gold), b = real_set(*answer);
  if (a && b) return equal_real_sets(*a, *b);
  // Intersections, and unions with ends that are no known numbers: piece by piece.
  const bool pieces = gold->is(Kind::set_union) || gold->is(Kind::intersection);
  return pieces && gold->kind == answer->kind && equal_in_any_order(gold->args, answer->args);
}

}  // namespace hexad::math
