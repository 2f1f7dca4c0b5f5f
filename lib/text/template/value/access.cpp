// object.name, object[index], object[a:b:c] as Jinja's sandbox resolves them.
#include <algorithm>

#include "lib/text/template/function/builtins.hpp"
#include "lib/text/template/loop.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

// The character with that index; the caller has checked the range.
Value character(const Text& text, int64_t index, Budget& budget) {
  if (text.length == static_cast<int64_t>(text.bytes.size())) return make_text(text.bytes.substr(index, 1), budget);
  budget.touch(text.bytes.size());
  size_t position = byte_offset(text.bytes, index);
  const size_t begin = position;
  next_code_point(text.bytes, position);
  return make_text(text.bytes.substr(begin, position - begin), budget);
}

bool is_indexable(const Value& value) {
  return value.text() || value.range() || value.is_sequence(SequenceKind::list) ||
         value.is_sequence(SequenceKind::tuple);
}

Value element(const Value& container, int64_t index, Budget& budget) {
  if (const Text* text = container.text()) return character(*text, index, budget);
  if (const Range* range = container.range()) return range->at(index);
  return container.sequence()->items[index];
}

// Bounds of a slice, as Python's slice.indices gives them.
struct Bounds {
  int64_t start, stop, step;
};

Bounds slice_bounds(const Value& start, const Value& stop, const Value& step, int64_t size) {
  const auto number = [](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    if (!value.is_integer()) fault("slice indices must be integers or None");
    constexpr Int far = Int{1} << 40;
    return static_cast<int64_t>(std::clamp(value.integer(), -far, far));
  };
  const int64_t stride = number(step, 1);
  if (stride == 0) fault("slice step cannot be zero");
  const int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    const int64_t index = number(value, 0);
    return std::clamp(index < 0 ? index + size : index, lowest, highest);
  };
  return {bound(start, stride > 0 ? lowest : highest), bound(stop, stride > 0 ? highest : lowest), stride};
}

// Byte offsets of every code point, and the end.
std::vector<size_t> offsets_of(const Text& text, Budget& budget) {
  budget.allocate(text.bytes.size() * sizeof(size_t));
  std::vector<size_t> offsets;
  for (size_t position = 0; position < text.bytes.size();) {
    offsets.push_back(position);
    next_code_point(text.bytes, position);
  }
  offsets.push_back(text.bytes.size());
  return offsets;
}

Value slice_text(const Text& text, const Bounds& bounds, Budget& budget) {
  const auto [start, stop, step] = bounds;
  if (step == 1) {
    const size_t begin = byte_offset(text.bytes, start);
    const size_t size = stop <= start ? 0 : byte_offset(std::string_view(text.bytes).substr(begin), stop - start);
    budget.touch(text.bytes.size());
    return make_text(text.bytes.substr(begin, size), budget);
  }
  const std::vector<size_t> offsets = offsets_of(text, budget);
  std::string picked;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    picked.append(text.bytes, offsets[i], offsets[i + 1] - offsets[i]);
  }
  return make_text(std::move(picked), budget);
}

Value unsafe(const Value& value, std::string_view name) {
  return make_undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(value)));
}

bool is_internal(std::string_view name) { return name.size() > 4 && name.starts_with("__") && name.ends_with("__"); }

// A part of a path: digits are an index.
Value path_part(const Value& item, std::string_view part, Budget& budget) {
  const bool digits = !part.empty() && part.size() < 10 &&
                      std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  return get_item(item, digits ? Value(std::stoi(std::string(part))) : make_text(std::string(part), budget), budget);
}

}  // namespace

Value get_attribute(const Value& object, std::string_view name, Budget& budget) {
  if (object.is_undefined()) fault_undefined(object);
  if (const Namespace* space = object.space()) {
    if (const Value* value = space->attributes.find(name)) return *value;
  } else if (object.loop()) {
    if (std::optional<Value> value = loop_attribute(object, name, budget)) return *value;
  } else if (std::optional<Value> method = find_method(object, name, budget)) {
    return *method;
  } else if (const Value* value = object.dict() ? object.dict()->find(name) : nullptr) {
    return *value;
  }
  if (is_internal(name)) return unsafe(object, name);
  return make_missing(object, make_text(std::string(name), budget), budget);
}

Value get_item(const Value& object, const Value& index, Budget& budget) {
  if (object.is_undefined()) fault_undefined(object);
  if (const Dict* dict = object.dict()) {
    const bool hashable = !index.dict() && !index.is_sequence(SequenceKind::list);
    if (const Value* value = hashable ? dict->find(index, budget) : nullptr) return *value;
  } else if (is_indexable(object) && index.is_integer()) {
    const int64_t size = length(object, budget);
    const Int wanted = index.integer() < 0 ? index.integer() + size : index.integer();
    if (wanted >= 0 && wanted < size) return element(object, static_cast<int64_t>(wanted), budget);
  }
  if (const Text* name = index.text()) {
    if (object.dict()) {
      if (std::optional<Value> method = find_method(object, name->bytes, budget)) return *method;
      if (is_internal(name->bytes)) return unsafe(object, name->bytes);
    } else {
      return get_attribute(object, name->bytes, budget);
    }
  }
  return make_missing(object, index, budget);
}

Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step, Budget& budget) {
  if (object.is_undefined()) fault_undefined(object);
  if (!is_indexable(object)) return make_undefined(fmt::format("'{}' object cannot be sliced", type_name(object)));
  const Bounds bounds = slice_bounds(start, stop, step, length(object, budget));
  if (const Text* text = object.text()) return slice_text(*text, bounds, budget);
  if (const Range* range = object.range()) {
    budget.allocate(sizeof(Range));
    return std::make_shared<const Range>(
        Range{range->at(bounds.start), range->at(bounds.stop), range->step * bounds.step});
  }
  std::vector<Value> items;
  for (int64_t i = bounds.start; bounds.step > 0 ? i < bounds.stop : i > bounds.stop; i += bounds.step) {
    budget.step();
    items.push_back(element(object, i, budget));
  }
  return make_sequence(object.sequence()->kind, std::move(items), budget);
}

Value get_path(const Value& item, const Value& path, Budget& budget) {
  if (!path.text()) return get_item(item, path, budget);
  std::string_view rest = path.text()->bytes;
  Value value = item;
  for (;;) {
    const size_t dot = rest.find('.');
    value = path_part(value, rest.substr(0, dot), budget);
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace hexad::text::jinja
