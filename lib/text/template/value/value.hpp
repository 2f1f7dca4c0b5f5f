// The values of a template: Python's, as far as templates see them. All but namespaces, generators and loops are
// immutable and shared, so copies are cheap.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "lib/text/template/budget.hpp"

namespace hexad::text::jinja {

class Evaluator;
class Value;
struct Callable;
struct Dict;
struct LoopState;
struct Namespace;
struct Generator;

using Int = __int128;  // Python's integers are unbounded; beyond 127 bits a template gets an error

// A name or item that is not there. It prints as nothing; `message` is the error when more is done with it.
struct Undefined {
  std::shared_ptr<const std::string> message;
};

struct None {};

struct Text {
  std::string bytes;            // UTF-8
  bool safe = false;            // Jinja's Markup: escaping leaves it alone
  mutable int64_t length = -1;  // in code points, once counted
};

enum class SequenceKind { list, tuple, dict_keys, dict_values, dict_items };

struct Sequence {
  SequenceKind kind;
  std::vector<Value> items;
  int depth;  // nesting of values; bounded, because values are destroyed recursively
};

struct Range {
  Int start, stop, step;
  Int length() const;
  Int at(Int index) const { return start + index * step; }
};

class Value {
 public:
  using Data =
      std::variant<Undefined, None, bool, Int, double, std::shared_ptr<const Text>, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Dict>, std::shared_ptr<const Range>, std::shared_ptr<Generator>,
                   std::shared_ptr<Namespace>, std::shared_ptr<const Callable>, std::shared_ptr<LoopState>>;

  Value() : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(int value) : data_(Int{value}) {}
  Value(int64_t value) : data_(Int{value}) {}
  Value(size_t value) : data_(Int{value}) {}
  Value(Int value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(const char*) = delete;  // would be a bool: use make_text
  template <typename T>
  Value(std::shared_ptr<T> value) : data_(std::move(value)) {}
  Value(Undefined value) : data_(std::move(value)) {}

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_integer() const { return is<Int>() || is<bool>(); }  // Python: bool is an int
  bool is_number() const { return is_integer() || is<double>(); }

  // nullptr when it is something else.
  const Text* text() const { return pointer<const Text>(); }
  const Sequence* sequence() const { return pointer<const Sequence>(); }
  const Dict* dict() const { return pointer<const Dict>(); }
  const Range* range() const { return pointer<const Range>(); }
  Generator* generator() const { return pointer<Generator>(); }
  Namespace* space() const { return pointer<Namespace>(); }
  const Callable* callable() const { return pointer<const Callable>(); }
  LoopState* loop() const { return pointer<LoopState>(); }
  bool is_sequence(SequenceKind kind) const { return sequence() && sequence()->kind == kind; }

  Int integer() const { return is<bool>() ? Int{std::get<bool>(data_)} : std::get<Int>(data_); }
  double real() const { return is<double>() ? std::get<double>(data_) : static_cast<double>(integer()); }
  const Data& data() const { return data_; }
  // The shared pointer's address, or nullptr: identity of everything that is not a scalar.
  const void* identity() const;
  int depth() const;

 private:
  template <typename T>
  T* pointer() const {
    const auto* held = std::get_if<std::shared_ptr<T>>(&data_);
    return held ? held->get() : nullptr;
  }
  Data data_;
};

// Insertion-ordered, as Python's. Keys are scalars and tuples of them; 1, 1.0 and true are the same key.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key, Budget& budget) const;  // faults on a key that cannot be hashed
  void set(const Value& key, Value value, Budget& budget);    // only while it is being built

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> by_text_, by_other_;
};

// Yields the next value and returns true, or returns false at the end.
using Iterator = std::function<bool(Value&)>;

// What `map`, `select` and the like give: values are made when asked for, once.
struct Generator {
  Iterator next;
  int depth;
};

struct Namespace {
  Dict attributes;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Functions, methods bound to a value, macros.
struct Callable {
  std::string name;
  std::function<Value(Evaluator&, Arguments&)> call;
  int depth = 1;
};

Value make_text(std::string bytes, Budget& budget, bool safe = false);
Value make_sequence(SequenceKind kind, std::vector<Value> items, Budget& budget);
inline Value make_list(std::vector<Value> items, Budget& budget) {
  return make_sequence(SequenceKind::list, std::move(items), budget);
}
Value make_dict(Dict dict, Budget& budget);
Value make_generator(Iterator next, int upstream_depth, Budget& budget);
Value make_undefined(std::string message);
// `object` has no attribute or element `name`.
Value make_missing(const Value& object, const Value& name, Budget& budget);
Value from_json(const nlohmann::ordered_json& json, Budget& budget);

// Python's type name: "str", "int", "NoneType" ...
std::string_view type_name(const Value& value);
bool truth(const Value& value);
bool equal(const Value& a, const Value& b, Budget& budget);
// -1, 0, 1; faults when the two have no order. `op` is for the message.
int order(const Value& a, const Value& b, std::string_view op, Budget& budget);
bool contains(const Value& container, const Value& item, Budget& budget);
// Faults when `value` cannot be iterated; an undefined value is empty.
Iterator iterate(const Value& value, Budget& budget);
std::vector<Value> to_vector(const Value& value, Budget& budget);
int64_t text_length(const Text& text);
// len(); faults when it has none.
int64_t length(const Value& value, Budget& budget);
[[noreturn]] void fault_undefined(const Value& value);

}  // namespace hexad::text::jinja
