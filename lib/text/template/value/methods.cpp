// Methods of dictionaries, lists and texts as attributes of values.
#include <algorithm>
#include <array>

#include "lib/text/template/function/arguments.hpp"
#include "lib/text/template/function/builtins.hpp"

namespace hexad::text::jinja {
namespace {

// What would change the value: Jinja's immutable sandbox refuses to call it.
constexpr std::array<std::string_view, 5> dict_mutators = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::array<std::string_view, 8> list_mutators = {"append", "clear",  "extend",  "insert",
                                                           "pop",    "remove", "reverse", "sort"};

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value view(const Dict& dict, SequenceKind kind, Budget& budget) {
  std::vector<Value> items;
  budget.allocate(dict.entries.size() * sizeof(Value));
  for (const auto& [key, value] : dict.entries) {
    if (kind == SequenceKind::dict_keys) items.push_back(key);
    if (kind == SequenceKind::dict_values) items.push_back(value);
    if (kind == SequenceKind::dict_items) items.push_back(make_sequence(SequenceKind::tuple, {key, value}, budget));
  }
  return make_sequence(kind, std::move(items), budget);
}

Value call_dict_method(const Value& self, std::string_view name, Arguments& arguments, Budget& budget) {
  const Dict& dict = *self.dict();
  if (name == "get") {
    const Bound bound("get", arguments, {"key", "default"}, 1);
    const Value* found = dict.find(bound.at(0), budget);
    return found ? *found : bound.value(1);
  }
  const Bound none(name, arguments, {});
  if (name == "keys") return view(dict, SequenceKind::dict_keys, budget);
  if (name == "values") return view(dict, SequenceKind::dict_values, budget);
  if (name == "items") return view(dict, SequenceKind::dict_items, budget);
  return self;  // copy
}

Value call_list_method(const Value& self, std::string_view name, Arguments& arguments, Budget& budget) {
  const Bound bound(name, arguments, {"value"}, 1);
  int64_t count = 0;
  const std::vector<Value>& items = self.sequence()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!equal(items[i], bound.at(0), budget)) continue;
    if (name == "index") return static_cast<int64_t>(i);
    ++count;
  }
  if (name == "index") fault("the value is not in the {}", type_name(self));
  return count;
}

Value bind_method(const Value& self, std::string_view name, Budget& budget,
                  Value (*method)(Evaluator&, const Value&, std::string_view, Arguments&, Budget&)) {
  budget.allocate(sizeof(Callable) + 64);
  Callable bound;
  bound.name = std::string(name);
  bound.depth = self.depth() + 1;
  bound.call = [self, name = bound.name, method, &budget](Evaluator& evaluator, Arguments& arguments) {
    return method(evaluator, self, name, arguments, budget);
  };
  return std::make_shared<const Callable>(std::move(bound));
}

}  // namespace

std::optional<Value> find_method(const Value& value, std::string_view name, Budget& budget) {
  const bool is_list = value.is_sequence(SequenceKind::list);
  if ((value.dict() && is_one_of(name, dict_mutators)) || (is_list && is_one_of(name, list_mutators))) {
    return make_undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(value)));
  }
  if (value.dict() && (name == "get" || name == "keys" || name == "values" || name == "items" || name == "copy")) {
    return bind_method(value, name, budget,
                       [](Evaluator&, const Value& self, std::string_view method, Arguments& arguments, Budget& b) {
                         return call_dict_method(self, method, arguments, b);
                       });
  }
  if ((is_list || value.is_sequence(SequenceKind::tuple)) && (name == "index" || name == "count")) {
    return bind_method(value, name, budget,
                       [](Evaluator&, const Value& self, std::string_view method, Arguments& arguments, Budget& b) {
                         return call_list_method(self, method, arguments, b);
                       });
  }
  if (value.text() && is_text_method(name)) {
    return bind_method(value, name, budget,
                       [](Evaluator& evaluator, const Value& self, std::string_view method, Arguments& arguments,
                          Budget&) { return call_text_method(evaluator, self, method, arguments); });
  }
  return std::nullopt;
}

}  // namespace hexad::text::jinja
