#include "lib/yaml/interpolation.hpp"

#include <cstdlib>

#include "lib/base/error.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/source.hpp"

namespace hexad::yaml {
namespace {

// Python counts booleans as the integers 0 and 1.
bool is_integral(const Node& value) { return value.is_int() || value.is_bool(); }
bool is_numeric(const Node& value) { return is_integral(value) || value.is_double(); }
int64_t integer(const Node& value) { return value.is_bool() ? value.as_bool() : value.as_int(); }
double real(const Node& value) { return value.is_double() ? value.as_double() : static_cast<double>(integer(value)); }

[[noreturn]] void wrong_kinds(const std::string& name, const Node& a, const Node& b) {
  fail(ErrorKind::config, "${{{}:...}} cannot take {} and {}", name, a.describe(), b.describe());
}

Node checked(const std::string& name, int64_t result, bool overflow) {
  if (overflow) fail(ErrorKind::config, "${{{}:...}} gives an integer beyond 64 bits", name);
  return Node(result);
}

// Sums of sums double: this is far above what a configuration adds, and far below what a machine holds.
constexpr size_t kLongestSum = 1 << 20;

void require_short(size_t length) {
  if (length > kLongestSum) fail(ErrorKind::config, "${{add:...}} gives more than {} characters or items", kLongestSum);
}

Node add(const Node& a, const Node& b) {
  if (a.is_string() && b.is_string()) {
    require_short(a.as_string().size() + b.as_string().size());
    return Node(a.as_string() + b.as_string());
  }
  if (a.is_list() && b.is_list()) {
    require_short(a.items().size() + b.items().size());
    Node::List both = a.items();
    std::ranges::copy(b.items(), std::back_inserter(both));
    return Node(std::move(both));
  }
  if (!is_numeric(a) || !is_numeric(b)) wrong_kinds("add", a, b);
  if (!is_integral(a) || !is_integral(b)) return Node(real(a) + real(b));
  int64_t sum = 0;
  const bool overflow = __builtin_add_overflow(integer(a), integer(b), &sum);
  return checked("add", sum, overflow);
}

Node mul(const Node& a, const Node& b) {
  if (!is_numeric(a) || !is_numeric(b)) wrong_kinds("mul", a, b);
  if (!is_integral(a) || !is_integral(b)) return Node(real(a) * real(b));
  int64_t product = 0;
  const bool overflow = __builtin_mul_overflow(integer(a), integer(b), &product);
  return checked("mul", product, overflow);
}

Node div(const Node& a, const Node& b) {
  if (!is_numeric(a) || !is_numeric(b)) wrong_kinds("div", a, b);
  if (real(b) == 0) fail(ErrorKind::config, "${{div:{},{}}} divides by zero", python_str(a), python_str(b));
  return Node(real(a) / real(b));
}

Node max(const Node& a, const Node& b) {
  if (a.is_string() && b.is_string()) return b.as_string() > a.as_string() ? b : a;
  if (!is_numeric(a) || !is_numeric(b)) wrong_kinds("max", a, b);
  if (is_integral(a) && is_integral(b)) return integer(b) > integer(a) ? b : a;
  return real(b) > real(a) ? b : a;
}

Node environment(const std::vector<Node>& arguments) {
  if (arguments.empty() || arguments.size() > 2 || !arguments[0].is_string()) {
    fail(ErrorKind::config, "${{oc.env:NAME}} or ${{oc.env:NAME,default}} takes a name, and a default if wanted");
  }
  const std::string& variable = arguments[0].as_string();
  if (const char* value = std::getenv(variable.c_str())) {
    if (names_secret(variable)) keep_secret(value);
    Node node{std::string(value)};
    node.set_source(call_source("oc.env", {arguments[0]}));
    return node;
  }
  if (arguments.size() == 1) {
    fail(ErrorKind::config, "environment variable {0} is not set; set it or write ${{oc.env:{0},default}}", variable);
  }
  if (arguments[1].is_null()) return Node();
  return Node(python_str(arguments[1]));
}

}  // namespace

Node call_resolver(const std::string& name, const std::vector<Node>& arguments) {
  if (name == "oc.env") return environment(arguments);
  using Binary = Node (*)(const Node&, const Node&);
  static const std::map<std::string, Binary> binary = {{"add", add}, {"mul", mul}, {"div", div}, {"max", max}};
  const auto found = binary.find(name);
  if (found == binary.end()) {
    const std::vector<std::string> known = {"add", "mul", "div", "max", "oc.env", "oc.decode", "oc.select"};
    const std::optional<std::string> near = nearest(name, known);
    fail(ErrorKind::config, "unknown resolver '{}'{}; there are {}", name,
         near ? fmt::format(", did you mean '{}'", *near) : "", joined(known));
  }
  if (arguments.size() != 2) {
    fail(ErrorKind::config, "${{{}:...}} takes two arguments, got {}", name, arguments.size());
  }
  return found->second(arguments[0], arguments[1]);
}

}  // namespace hexad::yaml
