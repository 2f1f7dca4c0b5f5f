#include "lib/expression/operators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hexad::expression {
namespace {

using Known = std::optional<Value>;
using Operands = std::span<const Known>;

Known whole_quotient(Op op, int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) {  // the processor traps on the least integer, also for the remainder
    int64_t negative = 0;
    if (op == Op::modulo) return Value(0);
    return __builtin_sub_overflow(int64_t{0}, a, &negative) ? std::nullopt : Known(Value(negative));
  }
  const int64_t rest = a % b;
  const bool round_down = rest != 0 && (rest < 0) != (b < 0);
  if (op == Op::modulo) return Value(round_down ? rest + b : rest);
  return Value(a / b - (round_down ? 1 : 0));
}

Known whole_arithmetic(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == Op::add)
    overflow = __builtin_add_overflow(a, b, &result);
  else if (op == Op::subtract)
    overflow = __builtin_sub_overflow(a, b, &result);
  else if (op == Op::multiply)
    overflow = __builtin_mul_overflow(a, b, &result);
  else
    return whole_quotient(op, a, b);
  return overflow ? std::nullopt : Known(Value(result));
}

// CPython's float_divmod: floor(a / b) alone is wrong where the division rounds up to an integer.
double real_quotient(Op op, double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (op == Op::modulo) return rest == 0 ? std::copysign(0.0, b) : rest;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

double real_arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    default: break;
  }
  if (b == 0) return std::numeric_limits<double>::quiet_NaN();
  return op == Op::divide ? a / b : real_quotient(op, a, b);
}

std::optional<double> number(const Value& value) {
  if (const int64_t* whole = std::get_if<int64_t>(&value.data)) return static_cast<double>(*whole);
  const double* real = std::get_if<double>(&value.data);
  return real ? std::optional(*real) : std::nullopt;
}

// add, subtract, multiply, divide, floor_divide and modulo, as Python has them: of two integers an integer, but for
// divide; the quotient of // is rounded down, and % has the sign of the divisor. nullopt as for apply().
Known arithmetic(Op op, const Value& a, const Value& b) {
  const int64_t *i = std::get_if<int64_t>(&a.data), *j = std::get_if<int64_t>(&b.data);
  if (i && j && op != Op::divide) return whole_arithmetic(op, *i, *j);
  const std::optional<double> x = number(a), y = number(b);
  if (!x || !y) return std::nullopt;
  const double result = real_arithmetic(op, *x, *y);
  return std::isfinite(result) ? Known(Value(result)) : std::nullopt;
}

// Of zero and zero, zero.
Known gcd(int64_t a, int64_t b) {
  const auto magnitude = [](int64_t n) { return n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n); };
  const uint64_t divisor = std::gcd(magnitude(a), magnitude(b));
  const bool fits = divisor <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return fits ? Known(Value(static_cast<int64_t>(divisor))) : std::nullopt;
}

std::optional<bool> truth(const Known& value) {
  const bool* found = value ? std::get_if<bool>(&value->data) : nullptr;
  return found ? std::optional(*found) : std::nullopt;
}

// Kleene's `and` (decisive: false) and `or` (decisive: true): a decisive operand decides whatever the other is.
Known logical(bool decisive, Operands in) {
  const std::optional<bool> a = truth(in[0]), b = truth(in[1]);
  if (a == decisive || b == decisive) return Value(decisive);
  return a && b ? Known(Value(!decisive)) : std::nullopt;
}

Known choice(Operands in) {
  const std::optional<bool> condition = truth(in[1]);
  return condition ? in[*condition ? 0 : 2] : std::nullopt;
}

Known comparison(Op op, const Value& a, const Value& b) {
  const std::partial_ordering found = order(a, b);
  if (found == std::partial_ordering::unordered) return std::nullopt;
  switch (op) {
    case Op::less: return Value(found < 0);
    case Op::less_equal: return Value(found <= 0);
    case Op::greater: return Value(found > 0);
    default: return Value(found >= 0);
  }
}

Known membership(bool wanted, const Value& item, const Value& of) {
  const Value::List* list = std::get_if<Value::List>(&of.data);
  if (!list) return std::nullopt;
  return Value((std::ranges::find(*list, item) != list->end()) == wanted);
}

Known extreme(Op op, Operands in) {
  const Known* best = &in[0];
  for (const Known& each : in) {
    const std::partial_ordering found = order(*each, **best);
    if (found == std::partial_ordering::unordered) return std::nullopt;
    if (op == Op::min ? found < 0 : found > 0) best = &each;
  }
  return *best;
}

Known length(const Value& of) {
  if (const auto* list = std::get_if<Value::List>(&of.data)) return Value(static_cast<int64_t>(list->size()));
  const auto* text = std::get_if<std::string>(&of.data);
  return text ? Known(Value(static_cast<int64_t>(characters(*text)))) : std::nullopt;
}

Known common_divisor(const Value& a, const Value& b) {
  const int64_t *i = std::get_if<int64_t>(&a.data), *j = std::get_if<int64_t>(&b.data);
  return i && j ? gcd(*i, *j) : std::nullopt;
}

Known list_of(Operands in) {
  Value::List list;
  for (const Known& item : in) list.push_back(*item);
  return Value(std::move(list));
}

Known negative(const Value& value) {
  if (const double* real = std::get_if<double>(&value.data)) return Value(-*real);  // 0 - 0.0 would lose the sign
  return arithmetic(Op::subtract, Value(0), value);
}

}  // namespace

Known apply(Op op, Operands in) {
  if (op == Op::both || op == Op::either) return logical(op == Op::either, in);
  if (op == Op::choose) return choice(in);
  if (std::ranges::any_of(in, [](const Known& value) { return !value; })) return std::nullopt;
  switch (op) {
    case Op::negation: return truth(in[0]) ? Known(Value(!*truth(in[0]))) : std::nullopt;
    case Op::equal: return Value(*in[0] == *in[1]);
    case Op::not_equal: return Value(*in[0] != *in[1]);
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal: return comparison(op, *in[0], *in[1]);
    case Op::in: return membership(true, *in[0], *in[1]);
    case Op::not_in: return membership(false, *in[0], *in[1]);
    case Op::minus: return negative(*in[0]);
    case Op::list: return list_of(in);
    case Op::min:
    case Op::max: return extreme(op, in);
    case Op::gcd: return common_divisor(*in[0], *in[1]);
    case Op::len: return length(*in[0]);
    default: return arithmetic(op, *in[0], *in[1]);
  }
}

}  // namespace hexad::expression
