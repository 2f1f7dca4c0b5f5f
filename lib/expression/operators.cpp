#include "lib/expression/operators.hpp"

#include <algorithm>

#include "lib/expression/arithmetic.hpp"
#include "lib/expression/utf8.hpp"

namespace hexad::expression {
namespace {

using Known = std::optional<Value>;
using Operands = std::span<const Known>;

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
