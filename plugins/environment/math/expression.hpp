// What an answer says: a tree that keeps the form in which it was written ("2/4" of integers aside, which is 1/2).
#pragma once
#include <boost/multiprecision/cpp_int.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::math {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;

enum class Kind : uint8_t {
  rational,      // value
  decimal,       // value: written with a point, compared to six decimals
  symbol,        // name, real
  constant,      // name: pi, E, I, oo, -oo, zoo, nan, EulerGamma
  add,           // args
  mul,           // args
  power,         // base, exponent
  function,      // name of a known function; args
  applied,       // name of an unknown one; args
  hundredth,     // 1/100 of a percentage
  matrix,        // rows, columns; args row after row
  tuple,         // args, in order
  finite_set,    // args as written
  interval,      // begin, end; left_open, right_open
  set_union,     // args
  intersection,  // args
  complement,    // of, without
  named_set,     // name: empty, N, Z, Q, R, C
  relation,      // name: < <= > >= == !=; left, right
  conjunction,   // relations of a chain
  statement,     // name; args: a claim about sets, equal to nothing but itself
};

struct Node;
using Expression = std::shared_ptr<const Node>;

struct Node {
  Kind kind;
  Rational value = 0;
  std::string name;
  std::vector<Expression> args;
  bool real = true;
  bool left_open = false, right_open = false;
  size_t rows = 0, columns = 0;

  bool is(Kind which) const { return kind == which; }
  bool is_number() const;   // rational, decimal or infinite
  bool is_integer() const;  // a rational that is whole
  bool is_set() const;      // finite or not, tuples not
  bool is_constant(std::string_view which) const { return kind == Kind::constant && name == which; }
};

Expression rational(Rational value);
Expression decimal(Rational value);
Expression symbol(std::string name, bool real);
Expression constant(std::string name);
Expression node(Kind kind, std::vector<Expression> args, std::string name = {});

// Sums and products take in those that they are made of.
Expression sum(const Expression& a, const Expression& b);
Expression product(const Expression& a, const Expression& b);
Expression power(const Expression& base, const Expression& exponent);
// Numbers change their sign, the rest is multiplied by -1.
Expression negated(const Expression& a);
// Of integers a rational (of zeros zoo and nan), else a * b^-1.
Expression quotient(const Expression& a, const Expression& b);
Expression percentage(const Expression& a);
// Without repetitions.
Expression finite_set(const std::vector<Expression>& args);

// The same tree: sums and products in the same order of their terms, sets and chains in any.
bool same(const Node& a, const Node& b);
bool has_matrix(const Node& a);
bool only_symbols(const Node& a);  // "x", "AB", "A/B": what an equation may assign to

}  // namespace hexad::math
