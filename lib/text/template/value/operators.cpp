// Arithmetic and comparison, as Python has them.
#include <cmath>

#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/value/python_text.hpp"

namespace hexad::text::jinja {
namespace {

[[noreturn]] void fault_overflow() { fault("an integer is too large (more than 127 bits)"); }

[[noreturn]] void fault_operands(std::string_view op, const Value& left, const Value& right) {
  if (op == "+" && left.text()) fault("can only concatenate str (not \"{}\") to str", type_name(right));
  fault("unsupported operand type(s) for {}: '{}' and '{}'", op, type_name(left), type_name(right));
}

Int power(Int base, Int exponent) {
  Int result = 1;
  for (;;) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) fault_overflow();
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) fault_overflow();
  }
}

// Python rounds towards minus infinity, and the remainder has the divisor's sign.
Int floor_divide(Int a, Int b) {
  const Int quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Value real_arithmetic(std::string_view op, double a, double b);

Value integer_arithmetic(std::string_view op, Int a, Int b) {
  Int result = 0;
  if (op == "+" && !__builtin_add_overflow(a, b, &result)) return result;
  if (op == "-" && !__builtin_sub_overflow(a, b, &result)) return result;
  if (op == "*" && !__builtin_mul_overflow(a, b, &result)) return result;
  if (op == "+" || op == "-" || op == "*") fault_overflow();
  if (op == "**") {
    if (b >= 0) {
      if (a == 0 || a == 1) return b == 0 ? Int{1} : a;
      if (a == -1) return b % 2 == 0 ? Int{1} : Int{-1};
      return power(a, b);
    }
    if (a == 0) fault("0.0 cannot be raised to a negative power");
    return real_arithmetic(op, static_cast<double>(a), static_cast<double>(b));
  }
  if (b == 0) fault("{}", op == "/" ? "division by zero" : "integer division or modulo by zero");
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1)
    return op == "//" ? integer_arithmetic("-", 0, a) : Value(Int{0});  // the smallest integer has no negative
  return op == "//" ? floor_divide(a, b) : a - floor_divide(a, b) * b;
}

Value real_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") {
    if (a == 0 && b < 0) fault("0.0 cannot be raised to a negative power");
    if (a < 0 && b != std::floor(b)) fault("a negative number cannot be raised to a fraction");
    const double result = std::pow(a, b);
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fault("the result is too large for a float");
    return result;
  }
  if (b == 0)
    fault("{}", op == "/" ? "float division by zero" : op == "%" ? "float modulo" : "float floor division by zero");
  if (op == "/") return a / b;
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == "%") return remainder == 0 ? std::copysign(0.0, b) : remainder;
  const double quotient = (a - remainder) / b;  // a whole number, but for rounding
  return quotient == 0 ? std::copysign(0.0, a / b) : std::round(quotient);
}

Value repeat(const Value& value, Int count, Budget& budget) {
  count = std::clamp<Int>(count, 0, Int{1} << 40);  // beyond any budget, within the arithmetic below
  const uint64_t size = value.text() ? value.text()->bytes.size() : value.sequence()->items.size() * sizeof(Value);
  budget.allocate(static_cast<uint64_t>(std::min<Int>(INT64_MAX, count * static_cast<Int>(size))));
  if (size == 0) return value;
  const auto times = static_cast<size_t>(count);
  if (const Text* text = value.text()) {
    std::string repeated;
    repeated.reserve(times * size);
    for (size_t i = 0; i < times; ++i) repeated += text->bytes;
    return make_text(std::move(repeated), budget);
  }
  std::vector<Value> repeated;
  const std::vector<Value>& items = value.sequence()->items;
  for (size_t i = 0; i < times; ++i) repeated.insert(repeated.end(), items.begin(), items.end());
  return make_sequence(value.sequence()->kind, std::move(repeated), budget);
}

bool is_repeatable(const Value& value) {
  return value.text() || value.is_sequence(SequenceKind::list) || value.is_sequence(SequenceKind::tuple);
}

// Text that is marked safe stays safe: what is added to it is escaped.
Value concatenate(const Value& left, const Value& right, Budget& budget) {
  const bool safe = left.text()->safe || right.text()->safe;
  const Value a = safe ? escape_html(left, budget) : left, b = safe ? escape_html(right, budget) : right;
  budget.allocate(a.text()->bytes.size() + b.text()->bytes.size());
  return make_text(a.text()->bytes + b.text()->bytes, budget, safe);
}

Value join_sequences(const Sequence& left, const Sequence& right, Budget& budget) {
  budget.allocate((left.items.size() + right.items.size()) * sizeof(Value));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return make_sequence(left.kind, std::move(items), budget);
}

bool is_nan(const Value& value) { return value.is<double>() && std::isnan(value.real()); }

}  // namespace

Value arithmetic(std::string_view op, const Value& left, const Value& right, Budget& budget) {
  if (left.is_undefined()) fault_undefined(left);
  if (op == "%" && left.text()) return format_percent(left, right, budget);
  if (right.is_undefined()) fault_undefined(right);
  if (left.is_integer() && right.is_integer()) return integer_arithmetic(op, left.integer(), right.integer());
  if (left.is_number() && right.is_number()) return real_arithmetic(op, left.real(), right.real());
  if (op == "+" && left.text() && right.text()) return concatenate(left, right, budget);
  if (op == "+" && left.sequence() && right.sequence() && left.sequence()->kind == right.sequence()->kind &&
      is_repeatable(left)) {
    return join_sequences(*left.sequence(), *right.sequence(), budget);
  }
  if (op == "*" && is_repeatable(left) && right.is_integer()) return repeat(left, right.integer(), budget);
  if (op == "*" && left.is_integer() && is_repeatable(right)) return repeat(right, left.integer(), budget);
  fault_operands(op, left, right);
}

bool compare(std::string_view op, const Value& left, const Value& right, Budget& budget) {
  if (op == "==") return equal(left, right, budget);
  if (op == "!=") return !equal(left, right, budget);
  if (op == "in") return contains(right, left, budget);
  if (op == "not in") return !contains(right, left, budget);
  const int sign = order(left, right, op, budget);
  if (is_nan(left) || is_nan(right)) return false;
  return op == "<" ? sign < 0 : op == "<=" ? sign <= 0 : op == ">" ? sign > 0 : sign >= 0;
}

}  // namespace hexad::text::jinja
