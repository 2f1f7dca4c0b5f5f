// Truth, equality, order and membership, as Python has them.
#include <cmath>

#include "lib/text/template/loop.hpp"
#include "lib/text/template/value/python_text.hpp"

namespace hexad::text::jinja {
namespace {

bool equal_sequences(const Sequence& a, const Sequence& b, Budget& budget) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(a.items[i], b.items[i], budget)) return false;
  }
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b, Budget& budget) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key, budget);
    if (!other || !equal(value, *other, budget)) return false;
  }
  return true;
}

// NaN compares as neither; the callers treat it as equal only for order.
template <typename T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

bool equal_numbers(const Value& a, const Value& b) {
  return a.is_integer() && b.is_integer() ? a.integer() == b.integer() : a.real() == b.real();
}

}  // namespace

std::string_view type_name(const Value& value) {
  struct Names {
    std::string_view operator()(const Undefined&) const { return "Undefined"; }
    std::string_view operator()(const None&) const { return "NoneType"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(Int) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const std::shared_ptr<const Text>&) const { return "str"; }
    std::string_view operator()(const std::shared_ptr<const Dict>&) const { return "dict"; }
    std::string_view operator()(const std::shared_ptr<const Range>&) const { return "range"; }
    std::string_view operator()(const std::shared_ptr<Generator>&) const { return "generator"; }
    std::string_view operator()(const std::shared_ptr<Namespace>&) const { return "Namespace"; }
    std::string_view operator()(const std::shared_ptr<const Callable>&) const { return "function"; }
    std::string_view operator()(const std::shared_ptr<LoopState>&) const { return "LoopContext"; }
    std::string_view operator()(const std::shared_ptr<const Sequence>& sequence) const {
      constexpr std::string_view names[] = {"list", "tuple", "dict_keys", "dict_values", "dict_items"};
      return names[static_cast<size_t>(sequence->kind)];
    }
  };
  return std::visit(Names{}, value.data());
}

bool truth(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is_integer()) return value.integer() != 0;
  if (value.is<double>()) return value.real() != 0;
  if (const Text* text = value.text()) return !text->bytes.empty();
  if (const Sequence* sequence = value.sequence()) return !sequence->items.empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  if (const Range* range = value.range()) return range->length() > 0;
  return true;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.text() && b.text()) {
    budget.touch(std::min(a.text()->bytes.size(), b.text()->bytes.size()));
    return a.text()->bytes == b.text()->bytes;
  }
  if (a.sequence() && b.sequence()) return equal_sequences(*a.sequence(), *b.sequence(), budget);
  if (a.dict() && b.dict()) return equal_dicts(*a.dict(), *b.dict(), budget);
  if (a.range() && b.range()) {
    return a.range()->length() == b.range()->length() &&
           (a.range()->length() == 0 ||
            (a.range()->start == b.range()->start && (a.range()->length() == 1 || a.range()->step == b.range()->step)));
  }
  if (a.is_undefined() || a.is_none()) return a.data().index() == b.data().index();
  return a.identity() != nullptr && a.identity() == b.identity();
}

int order(const Value& a, const Value& b, std::string_view op, Budget& budget) {
  budget.step();
  if (a.is_undefined()) fault_undefined(a);
  if (b.is_undefined()) fault_undefined(b);
  if (a.is_integer() && b.is_integer()) return three_way(a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return three_way(a.real(), b.real());
  if (a.text() && b.text()) {  // UTF-8 bytes order as code points do
    budget.touch(std::min(a.text()->bytes.size(), b.text()->bytes.size()));
    return three_way(a.text()->bytes.compare(b.text()->bytes), 0);
  }
  const Sequence *left = a.sequence(), *right = b.sequence();
  if (left && right && left->kind == right->kind && left->kind <= SequenceKind::tuple) {
    for (size_t i = 0; i < std::min(left->items.size(), right->items.size()); ++i) {
      if (!equal(left->items[i], right->items[i], budget)) return order(left->items[i], right->items[i], op, budget);
    }
    return three_way(left->items.size(), right->items.size());
  }
  fault("'{}' not supported between instances of '{}' and '{}'", op, type_name(a), type_name(b));
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  if (const Text* text = container.text()) {
    if (item.is_undefined()) fault_undefined(item);
    if (!item.text()) fault("'in <string>' requires string as left operand, not {}", type_name(item));
    budget.touch(text->bytes.size());
    return text->bytes.find(item.text()->bytes) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) return dict->find(item, budget) != nullptr;
  if (container.is_none() || container.is_number() || container.callable() || container.space()) {
    fault("argument of type '{}' is not iterable", type_name(container));
  }
  const Iterator next = iterate(container, budget);
  for (Value candidate; next(candidate);) {
    if (equal(candidate, item, budget)) return true;
  }
  return false;
}

}  // namespace hexad::text::jinja
