// Filters that give numbers.
#include <cmath>
#include <cstdlib>

#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/value/python_text.hpp"

namespace hexad::text::jinja {
namespace {

Value abs(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("abs", arguments, {});
  if (input.is_undefined()) fault_undefined(input);
  if (input.is<double>()) return std::abs(input.real());
  if (!input.is_integer()) fault("bad operand type for abs(): '{}'", type_name(input));
  return input.integer() < 0 ? arithmetic("-", Int{0}, input, evaluator.budget) : Value(input.integer());
}

// A real number cut to an integer; nullopt when it is not finite.
std::optional<Value> truncate(double real) {
  if (!std::isfinite(real)) return std::nullopt;
  if (std::abs(real) >= 1.7e38) fault("an integer is too large");
  return Value(static_cast<Int>(real));
}

Value to_integer(Evaluator&, const Value& input, Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  const Value fallback = bound.has(0) ? bound.at(0) : Value(0);
  if (input.is_undefined()) fault_undefined(input);
  if (input.is_integer()) return input.integer();
  if (input.is<double>()) return truncate(input.real()).value_or(fallback);
  if (!input.text()) return fallback;
  if (const std::optional<Int> value = parse_integer(input.text()->bytes, static_cast<int>(bound.integer(1, 10))))
    return *value;
  const std::optional<double> real = parse_real(input.text()->bytes);
  return real ? truncate(*real).value_or(fallback) : fallback;
}

Value to_real(Evaluator&, const Value& input, Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  const Value fallback = bound.has(0) ? bound.at(0) : Value(0.0);
  if (input.is_undefined()) fault_undefined(input);
  if (input.is_number()) return input.real();
  const std::optional<double> real = input.text() ? parse_real(input.text()->bytes) : std::nullopt;
  return real ? Value(*real) : fallback;
}

// Python's round(): the exact decimal expansion, ties to even.
double round_to(double value, int digits) {
  if (!std::isfinite(value) || digits > 320) return value;
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
  const double scale = std::pow(10.0, -digits);
  return std::isfinite(scale) ? std::nearbyint(value / scale) * scale : 0.0;
}

Value round(Evaluator&, const Value& input, Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  const auto digits = static_cast<int>(std::clamp<int64_t>(bound.integer(0, 0), -400, 400));
  const std::string method = bound.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") fault("method must be common, ceil or floor");
  if (input.is_undefined()) fault_undefined(input);
  if (!input.is_number()) fault("type {} doesn't define __round__ method", type_name(input));
  if (method == "common") {
    if (!input.is_integer()) return round_to(input.real(), digits);
    if (digits >= 0) return input.integer();
    return static_cast<Int>(round_to(input.real(), digits));
  }
  const double scale = std::pow(10.0, digits);
  const double scaled = method == "ceil" ? std::ceil(input.real() * scale) : std::floor(input.real() * scale);
  return (scaled + 0.0) / scale;  // never -0.0
}

Value length_filter(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("length", arguments, {});
  return length(input, evaluator.budget);
}

Value sum(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  Value total = bound.has(1) ? bound.at(1) : Value(0);
  if (total.text()) fault("sum() can't sum strings");
  const Iterator next = iterate(input, evaluator.budget);
  for (Value item; next(item);) {
    if (bound.has(0) && !bound.at(0).is_none()) item = get_path(item, bound.at(0), evaluator.budget);
    total = arithmetic("+", total, item, evaluator.budget);
  }
  return total;
}

}  // namespace

const FilterTable& number_filters() {
  static const FilterTable table = {{"abs", abs},        {"count", length_filter},  {"float", to_real},
                                    {"int", to_integer}, {"length", length_filter}, {"round", round},
                                    {"sum", sum}};
  return table;
}

}  // namespace hexad::text::jinja
