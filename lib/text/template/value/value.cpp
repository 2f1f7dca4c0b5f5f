#include "lib/text/template/value/value.hpp"

#include <algorithm>
#include <cmath>

#include "lib/base/utf8.hpp"
#include "lib/text/template/loop.hpp"
#include "lib/text/template/value/python_text.hpp"
#include "lib/text/template/value/unicode.hpp"

namespace hexad::text::jinja {
namespace {

constexpr int max_value_depth = 200;  // of lists in lists

int deeper(int depth) {
  if (depth >= max_value_depth) fault("values nest too deeply (more than {} levels)", max_value_depth);
  return depth + 1;
}

// A text that is the same for keys that Python holds equal.
std::string hash_key(const Value& key, Budget& budget) {
  budget.step();
  if (key.is_none()) return "n";
  if (key.is_undefined()) return "u";
  if (key.is_integer()) return "i" + integer_text(key.integer());
  if (key.is<double>()) {
    const double real = key.real();
    if (real == std::floor(real) && std::abs(real) < 1e30) return "i" + integer_text(static_cast<Int>(real));
    return "f" + real_text(real);
  }
  if (const Text* text = key.text()) return fmt::format("s{}:{}", text->bytes.size(), text->bytes);
  if (key.is_sequence(SequenceKind::tuple)) {
    std::string joined = "t";
    for (const Value& item : key.sequence()->items) joined += hash_key(item, budget) + ",";
    budget.allocate(joined.size());
    return joined;
  }
  fault("unhashable type: '{}'", type_name(key));
}

// A number of a data file that stands in `json` as it was written (parse_data), as Python reads it.
Value written_number(const nlohmann::ordered_json::binary_t& characters) {
  const std::string text(characters.begin(), characters.end());
  if (text.find_first_of(".eE") != text.npos) return parse_real(text).value_or(0);
  return parse_integer(text, 10).value_or(0);
}

}  // namespace

Int Range::length() const {
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

const void* Value::identity() const {
  return std::visit(
      [](const auto& held) -> const void* {
        if constexpr (requires { held.get(); })
          return held.get();
        else
          return nullptr;
      },
      data_);
}

int Value::depth() const {
  if (const Sequence* items = sequence()) return items->depth;
  if (const Dict* entries = dict()) return entries->depth;
  if (const Generator* lazy = generator()) return lazy->depth;
  if (const Callable* function = callable()) return function->depth;
  if (const LoopState* state = loop()) return state->iterable.depth() + 1;
  return 1;  // namespaces too: they are emptied one by one at the end
}

const Value* Dict::find(std::string_view key) const {
  const auto found = by_text_.find(key);
  return found == by_text_.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::find(const Value& key, Budget& budget) const {
  if (const Text* text = key.text()) {
    budget.touch(text->bytes.size());
    return find(text->bytes);
  }
  const auto found = by_other_.find(hash_key(key, budget));
  return found == by_other_.end() ? nullptr : &entries[found->second].second;
}

void Dict::set(const Value& key, Value value, Budget& budget) {
  depth = std::max(depth, deeper(value.depth()));
  const Text* text = key.text();
  std::string index_key = text ? text->bytes : hash_key(key, budget);
  budget.allocate(2 * sizeof(Value) + 64 + index_key.size());
  const auto [place, is_new] = (text ? by_text_ : by_other_).emplace(std::move(index_key), entries.size());
  if (is_new) {
    entries.emplace_back(key, std::move(value));
  } else {
    entries[place->second].second = std::move(value);
  }
}

Value make_text(std::string bytes, Budget& budget, bool safe) {
  budget.allocate(sizeof(Text) + bytes.size());
  return std::make_shared<const Text>(Text{std::move(bytes), safe});
}

Value make_sequence(SequenceKind kind, std::vector<Value> items, Budget& budget) {
  budget.allocate(sizeof(Sequence) + items.size() * sizeof(Value));
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return std::make_shared<const Sequence>(Sequence{kind, std::move(items), deeper(depth)});
}

Value make_dict(Dict dict, Budget& budget) {
  budget.allocate(sizeof(Dict));
  return std::make_shared<const Dict>(std::move(dict));
}

Value make_generator(Iterator next, int upstream_depth, Budget& budget) {
  budget.allocate(sizeof(Generator) + 128);
  return std::make_shared<Generator>(Generator{std::move(next), deeper(upstream_depth)});
}

Value make_undefined(std::string message) { return Undefined{std::make_shared<const std::string>(std::move(message))}; }

Value make_missing(const Value& object, const Value& name, Budget& budget) {
  const std::string owner = object.is_none() ? "None" : fmt::format("{} object", type_name(object));
  if (const Text* text = name.text()) {
    return make_undefined(fmt::format("'{}' has no attribute {}", owner, quote_text(utf8_front(text->bytes, 100))));
  }
  return make_undefined(fmt::format("{} has no element {}", owner, repr(name, budget)));
}

Value from_json(const nlohmann::ordered_json& json, Budget& budget) {
  const Budget::Level level(budget);
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean: return json.get<bool>();
    case Type::number_integer: return Int{json.get<int64_t>()};
    case Type::number_unsigned: return static_cast<Int>(json.get<uint64_t>());
    case Type::number_float: return json.get<double>();
    case Type::binary: return written_number(json.get_binary());
    case Type::string: return make_text(json.get_ref<const std::string&>(), budget);
    case Type::array: {
      std::vector<Value> items;
      for (const auto& element : json) items.push_back(from_json(element, budget));
      return make_list(std::move(items), budget);
    }
    case Type::object: {
      Dict dict;
      for (const auto& [key, element] : json.items())
        dict.set(make_text(key, budget), from_json(element, budget), budget);
      return make_dict(std::move(dict), budget);
    }
    default: return Value();
  }
}

int64_t text_length(const Text& text) {
  if (text.length < 0) text.length = count_code_points(text.bytes);
  return text.length;
}

int64_t length(const Value& value, Budget& budget) {
  if (const Text* text = value.text()) {
    budget.touch(text->length < 0 ? text->bytes.size() : 0);
    return text_length(*text);
  }
  if (const Sequence* sequence = value.sequence()) return static_cast<int64_t>(sequence->items.size());
  if (const Dict* dict = value.dict()) return static_cast<int64_t>(dict->entries.size());
  if (const Range* range = value.range()) return static_cast<int64_t>(range->length());
  if (value.is_undefined()) return 0;
  if (LoopState* loop = value.loop()) return loop->length(budget);
  fault("object of type '{}' has no len()", type_name(value));
}

Iterator iterate(const Value& value, Budget& budget) {
  const auto counted = [&budget, value, index = int64_t{0}](auto size, auto at) {
    return [&budget, value, size, at, index](Value& out) mutable {
      budget.step();
      if (index >= size) return false;
      out = at(index++);
      return true;
    };
  };
  if (const Sequence* sequence = value.sequence()) {
    return counted(static_cast<int64_t>(sequence->items.size()), [sequence](int64_t i) { return sequence->items[i]; });
  }
  if (const Dict* dict = value.dict()) {
    return counted(static_cast<int64_t>(dict->entries.size()), [dict](int64_t i) { return dict->entries[i].first; });
  }
  if (const Range* range = value.range()) {
    return counted(static_cast<int64_t>(range->length()), [range](int64_t i) { return Value(range->at(i)); });
  }
  if (const Text* text = value.text()) {
    return [&budget, value, text, position = size_t{0}](Value& out) mutable {
      if (position >= text->bytes.size()) return false;
      const size_t begin = position;
      next_code_point(text->bytes, position);
      out = make_text(text->bytes.substr(begin, position - begin), budget);
      return true;
    };
  }
  if (Generator* generator = value.generator()) {
    return [value, generator, &budget](Value& out) {
      const Budget::Level level(budget);
      return generator->next(out);
    };
  }
  if (LoopState* loop = value.loop()) {
    return [value, loop](Value& out) {
      if (!loop->advance()) return false;
      out = loop->current;
      return true;
    };
  }
  if (value.is_undefined()) return [](Value&) { return false; };
  fault("'{}' object is not iterable", type_name(value));
}

std::vector<Value> to_vector(const Value& value, Budget& budget) {
  std::vector<Value> items;
  const Iterator next = iterate(value, budget);
  for (Value item; next(item);) {
    budget.allocate(sizeof(Value));
    items.push_back(item);
  }
  return items;
}

void fault_undefined(const Value& value) {
  const auto& undefined = std::get<Undefined>(value.data());
  fault("{}", undefined.message ? *undefined.message : "the value is undefined");
}

}  // namespace hexad::text::jinja
