#include "lib/expression/value.hpp"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

namespace hexad::expression {
namespace {

std::partial_ordering order_numbers(int64_t a, int64_t b) { return a <=> b; }
std::partial_ordering order_numbers(double a, double b) { return a <=> b; }

// Without rounding `a` to a double, which would make neighbours of large integers equal.
std::partial_ordering order_numbers(int64_t a, double b) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2**63
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= kBeyond) return std::partial_ordering::less;
  if (b < -kBeyond) return std::partial_ordering::greater;
  const int64_t whole = static_cast<int64_t>(b);  // towards zero
  if (a != whole) return a <=> whole;
  return 0.0 <=> b - static_cast<double>(whole);
}

std::partial_ordering order_numbers(double a, int64_t b) { return 0 <=> order_numbers(b, a); }

template <typename T>
constexpr bool is_number = std::is_same_v<T, int64_t> || std::is_same_v<T, double>;

}  // namespace

std::partial_ordering order(const Value& a, const Value& b) {
  const auto compare = []<typename A, typename B>(const A& x, const B& y) -> std::partial_ordering {
    if constexpr (is_number<A> && is_number<B>)
      return order_numbers(x, y);
    else if constexpr (std::is_same_v<A, std::string> && std::is_same_v<B, std::string>)
      return x <=> y;
    else
      return std::partial_ordering::unordered;
  };
  return std::visit(compare, a.data, b.data);
}

bool Value::operator==(const Value& other) const { return data == other.data || order(*this, other) == 0; }

std::string Value::text() const {
  const auto print = []<typename T>(const T& value) -> std::string {
    if constexpr (std::is_same_v<T, std::monostate>) {
      return "null";
    } else if constexpr (std::is_same_v<T, List>) {
      std::string items;
      for (const Value& item : value) items += (&item == value.data() ? "" : ", ") + item.text();
      return "[" + items + "]";
    } else {
      return fmt::format("{}", value);
    }
  };
  return std::visit(print, data);
}

}  // namespace hexad::expression
