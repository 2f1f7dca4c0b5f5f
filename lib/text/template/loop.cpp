#include "lib/text/template/loop.hpp"

namespace hexad::text::jinja {
namespace {

bool same(const std::vector<Value>& a, const std::vector<Value>& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i], budget)) return false;
  }
  return true;
}

Value cycle(LoopState& loop, const std::vector<Value>& choices) {
  if (choices.empty()) fault("no items for cycling given");
  return choices[static_cast<size_t>(loop.index0) % choices.size()];
}

Value changed(LoopState& loop, const std::vector<Value>& values, Budget& budget) {
  if (loop.last_changed && same(*loop.last_changed, values, budget)) return false;
  loop.last_changed = values;
  return true;
}

Value bind_method(const Value& loop, std::string_view name, Budget& budget) {
  Callable method;
  method.name = std::string(name);
  method.depth = loop.depth() + 1;
  method.call = [loop, name = method.name, &budget](Evaluator&, Arguments& arguments) {
    return name == "cycle" ? cycle(*loop.loop(), arguments.positional)
                           : changed(*loop.loop(), arguments.positional, budget);
  };
  return std::make_shared<const Callable>(std::move(method));
}

}  // namespace

bool LoopState::advance() {
  Value item;
  if (ahead) {
    item = *std::exchange(ahead, std::nullopt);
  } else if (!next(item)) {
    return false;
  }
  ++index0;
  before = std::exchange(current, std::move(item));
  return true;
}

bool LoopState::has_next() {
  Value item;
  if (!ahead && next(item)) ahead = std::move(item);
  return ahead.has_value();
}

int64_t LoopState::length(Budget& budget) {
  if (counted) return *counted;
  if (!iterable.generator()) return *(counted = jinja::length(iterable, budget));
  std::vector<Value> rest;
  for (Value item; next(item);) {
    budget.allocate(sizeof(Value));
    rest.push_back(item);
  }
  counted = index0 + 1 + (ahead ? 1 : 0) + static_cast<int64_t>(rest.size());
  next = iterate(make_list(std::move(rest), budget), budget);
  return *counted;
}

std::optional<Value> loop_attribute(const Value& value, std::string_view name, Budget& budget) {
  LoopState& loop = *value.loop();
  if (name == "index") return loop.index0 + 1;
  if (name == "index0") return loop.index0;
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return !loop.has_next();
  if (name == "length") return loop.length(budget);
  if (name == "revindex") return loop.length(budget) - loop.index0;
  if (name == "revindex0") return loop.length(budget) - loop.index0 - 1;
  if (name == "previtem") return loop.index0 == 0 ? make_undefined("there is no previous item") : loop.before;
  if (name == "nextitem") return loop.has_next() ? *loop.ahead : make_undefined("there is no next item");
  if (name == "depth") return loop.depth0 + 1;
  if (name == "depth0") return loop.depth0;
  if (name == "cycle" || name == "changed") return bind_method(value, name, budget);
  return std::nullopt;
}

}  // namespace hexad::text::jinja
