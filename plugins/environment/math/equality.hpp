// Do two expressions say the same: the decisions of math-verify 0.9 (math_verify/grader.py), which looks at the kinds
// of both before it compares values. It is not symmetric: the gold answer's kind decides.
#pragma once
#include <optional>

#include "plugins/environment/math/expression.hpp"

namespace hexad::math {

// Where one side is a decimal, to six decimals; whole numbers exactly. Throws TooMuch.
bool equal(const Expression& gold, const Expression& answer);

// Numbers and expressions (numbers.cpp). Equality of expressions with symbols is decided at random points: where two
// expressions that are not identical differ by an analytic function that is not zero, its zeros have measure zero, so
// that the 52-bit points agree to forty digits with a probability of about 2^-52 a point; four points have to agree.
bool equal_values(const Expression& a, const Expression& b);
// Identical wherever they are defined.
bool identical(const Node& a, const Node& b);

bool equal_sets(const Expression& gold, const Expression& answer);       // sets.cpp
bool equal_relations(const Expression& gold, const Expression& answer);  // relations.cpp

// The matrix that sums and products of matrices make; null for anything else (matrices.cpp).
Expression concrete_matrix(const Expression& a);

bool is_relation(const Node& a);  // or a chain of them
bool is_value(const Node& a);     // neither a relation nor a set nor a tuple

}  // namespace hexad::math
