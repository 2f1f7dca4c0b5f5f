// `value is name(arguments)`
#include "lib/base/text.hpp"
#include "lib/text/template/evaluator.hpp"
#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

// A test without arguments.
template <bool (*property)(const Value&)>
bool plain(Evaluator&, const Value& input, Arguments& arguments) {
  const Bound none("test", arguments, {});
  return property(input);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.is<bool>(); }
bool is_true(const Value& value) { return value.is<bool>() && truth(value); }
bool is_false(const Value& value) { return value.is<bool>() && !truth(value); }
bool is_integer(const Value& value) { return value.is<Int>(); }
bool is_float(const Value& value) { return value.is<double>(); }
bool is_number(const Value& value) { return value.is_number(); }
bool is_string(const Value& value) { return value.text() != nullptr; }
bool is_mapping(const Value& value) { return value.dict() != nullptr; }
bool is_escaped(const Value& value) { return value.text() && value.text()->safe; }
bool is_callable(const Value& value) { return value.callable() || value.loop() || value.is_undefined(); }
// Has a length and elements; Jinja's undefined value has both.
bool is_sequence(const Value& value) {
  return value.text() || value.dict() || value.range() || value.is_undefined() ||
         (value.sequence() && value.sequence()->kind <= SequenceKind::tuple);
}
bool is_iterable(const Value& value) {
  return is_sequence(value) || value.sequence() || value.generator() || value.loop();
}

Value remainder(Evaluator& evaluator, const Value& input, const Value& divisor) {
  return arithmetic("%", input, divisor, evaluator.budget);
}

template <int wanted>
bool has_parity(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("odd/even", arguments, {});
  return equal(remainder(evaluator, input, 2), wanted, evaluator.budget);
}

bool is_divisible(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("divisibleby", arguments, {"num"}, 1);
  return equal(remainder(evaluator, input, bound.at(0)), 0, evaluator.budget);
}

template <bool (*property)(std::string_view)>
bool text_is(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("test", arguments, {});
  return property(str(input, evaluator.budget));
}

struct Operator {
  static constexpr char equal[] = "==", unequal[] = "!=", less[] = "<", at_most[] = "<=", greater[] = ">",
                        at_least[] = ">=", in[] = "in";
};

template <const char* op>
bool compares(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("test", arguments, {"other"}, 1);
  return compare(op, input, bound.at(0), evaluator.budget);
}

bool is_same(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("sameas", arguments, {"other"}, 1);
  const Value& other = bound.at(0);
  if (input.data().index() != other.data().index()) return false;
  return input.identity() ? input.identity() == other.identity() : equal(input, other, evaluator.budget);
}

bool names_filter(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("filter", arguments, {});
  return is_filter_name(str(input, evaluator.budget));
}

bool names_test(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound none("test", arguments, {});
  return is_test_name(str(input, evaluator.budget));
}

const std::map<std::string_view, Test, std::less<>>& tests() {
  static const std::map<std::string_view, Test, std::less<>> table = {{"!=", compares<Operator::unequal>},
                                                                      {"<", compares<Operator::less>},
                                                                      {"<=", compares<Operator::at_most>},
                                                                      {"==", compares<Operator::equal>},
                                                                      {">", compares<Operator::greater>},
                                                                      {">=", compares<Operator::at_least>},
                                                                      {"boolean", plain<is_boolean>},
                                                                      {"callable", plain<is_callable>},
                                                                      {"defined", plain<is_defined>},
                                                                      {"divisibleby", is_divisible},
                                                                      {"eq", compares<Operator::equal>},
                                                                      {"equalto", compares<Operator::equal>},
                                                                      {"escaped", plain<is_escaped>},
                                                                      {"even", has_parity<0>},
                                                                      {"false", plain<is_false>},
                                                                      {"filter", names_filter},
                                                                      {"float", plain<is_float>},
                                                                      {"ge", compares<Operator::at_least>},
                                                                      {"greaterthan", compares<Operator::greater>},
                                                                      {"gt", compares<Operator::greater>},
                                                                      {"in", compares<Operator::in>},
                                                                      {"integer", plain<is_integer>},
                                                                      {"iterable", plain<is_iterable>},
                                                                      {"le", compares<Operator::at_most>},
                                                                      {"lessthan", compares<Operator::less>},
                                                                      {"lower", text_is<is_lower>},
                                                                      {"lt", compares<Operator::less>},
                                                                      {"mapping", plain<is_mapping>},
                                                                      {"ne", compares<Operator::unequal>},
                                                                      {"none", plain<is_none>},
                                                                      {"number", plain<is_number>},
                                                                      {"odd", has_parity<1>},
                                                                      {"sameas", is_same},
                                                                      {"sequence", plain<is_sequence>},
                                                                      {"string", plain<is_string>},
                                                                      {"test", names_test},
                                                                      {"true", plain<is_true>},
                                                                      {"undefined", plain<is_undefined>},
                                                                      {"upper", text_is<is_upper>}};
  return table;
}

}  // namespace

bool is_test_name(std::string_view name) { return tests().contains(name); }

std::string unknown_test(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, test] : tests()) names.emplace_back(known);
  const std::optional<std::string> similar = nearest(name, names);
  return fmt::format("No test named '{}'.{}", name, similar ? fmt::format(" Did you mean '{}'?", *similar) : "");
}

bool apply_test(Evaluator& evaluator, std::string_view name, const Value& input, Arguments& arguments) {
  const auto found = tests().find(name);
  if (found == tests().end()) fault("{}", unknown_test(name));
  return found->second(evaluator, input, arguments);
}

}  // namespace hexad::text::jinja
