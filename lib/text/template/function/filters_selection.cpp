// map, select and their kin, default, attr.
#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/evaluator.hpp"

namespace hexad::text::jinja {
namespace {

Value default_filter(Evaluator&, const Value& input, Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  const bool replaced = input.is_undefined() || (bound.flag(1, false) && !truth(input));
  if (!replaced) return input;
  if (bound.has(0)) return bound.at(0);
  return Value(std::make_shared<const Text>());
}

Value attr(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  const Bound bound("attr", arguments, {"name"}, 1);
  const std::string name = bound.text(0, "");
  if (input.dict()) {  // attributes only: a dictionary's are its methods
    if (std::optional<Value> method = find_method(input, name, evaluator.budget)) return *method;
    return make_missing(input, bound.at(0), evaluator.budget);
  }
  return get_attribute(input, name, evaluator.budget);
}

// What Jinja gives for every false value, none and 0 too: no items.
Value nothing(Evaluator& evaluator) {
  return make_generator([](Value&) { return false; }, 1, evaluator.budget);
}

// map('filter', arguments...) or map(attribute='a.b', default=x)
Value map(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  if (!truth(input)) return nothing(evaluator);
  const bool by_attribute = arguments.positional.empty();
  std::function<Value(const Value&)> change;
  if (by_attribute) {
    const Bound bound("map", arguments, {"attribute", "default"}, 1);
    change = [path = bound.at(0), fallback = bound.has(1) ? std::optional(bound.at(1)) : std::nullopt,
              &evaluator](const Value& item) {
      Value value = get_path(item, path, evaluator.budget);
      return value.is_undefined() && fallback ? *fallback : value;
    };
  } else {
    if (!arguments.positional[0].text()) fault("map() wants the name of a filter");
    Arguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    const std::string name = arguments.positional[0].text()->bytes;
    if (!is_filter_name(name)) fault("{}", unknown_filter(name));
    change = [name, rest, &evaluator](const Value& item) {
      Arguments copy = rest;
      return apply_filter(evaluator, name, item, copy);
    };
  }
  return make_generator(
      [change, next = iterate(input, evaluator.budget)](Value& out) {
        Value item;
        if (!next(item)) return false;
        out = change(item);
        return true;
      },
      input.depth(), evaluator.budget);
}

// select, reject: by a test of the item. selectattr, rejectattr: by a test of an attribute of it. Without a test:
// truth.
template <bool wanted, bool by_attribute>
Value select(Evaluator& evaluator, const Value& input, Arguments& arguments) {
  if (!truth(input)) return nothing(evaluator);
  Arguments rest = arguments;
  Value path;
  if (by_attribute) {
    if (rest.positional.empty()) fault("missing parameter: the attribute's name");
    path = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
  }
  std::string test;
  if (!rest.positional.empty()) {
    if (!rest.positional[0].text()) fault("the name of a test is wanted");
    test = rest.positional[0].text()->bytes;
    rest.positional.erase(rest.positional.begin());
    if (!is_test_name(test)) fault("{}", unknown_test(test));
  }
  return make_generator(
      [=, next = iterate(input, evaluator.budget), &evaluator](Value& out) {
        while (next(out)) {
          const Value subject = by_attribute ? get_path(out, path, evaluator.budget) : out;
          Arguments copy = rest;
          if ((test.empty() ? truth(subject) : apply_test(evaluator, test, subject, copy)) == wanted) return true;
        }
        return false;
      },
      input.depth(), evaluator.budget);
}

}  // namespace

const FilterTable& selection_filters() {
  static const FilterTable table = {{"attr", attr},
                                    {"d", default_filter},
                                    {"default", default_filter},
                                    {"map", map},
                                    {"reject", select<false, false>},
                                    {"rejectattr", select<false, true>},
                                    {"select", select<true, false>},
                                    {"selectattr", select<true, true>}};
  return table;
}

}  // namespace hexad::text::jinja
