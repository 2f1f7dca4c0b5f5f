// The arguments of a built-in, matched to its parameters.
#pragma once
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/text/template/value/value.hpp"

namespace hexad::text::jinja {

class Bound {
 public:
  // Matches positional and named arguments to `names`, the first `required` of which must be given. Faults otherwise.
  Bound(std::string_view callee, Arguments& arguments, std::initializer_list<std::string_view> names,
        size_t required = 0);

  bool has(size_t index) const { return values_[index].has_value(); }
  const Value& at(size_t index) const { return *values_[index]; }
  // The value, or none when it was not given.
  Value value(size_t index) const { return values_[index].value_or(Value()); }
  bool flag(size_t index, bool fallback) const { return has(index) ? truth(at(index)) : fallback; }
  int64_t integer(size_t index, int64_t fallback) const;
  std::string text(size_t index, std::string_view fallback) const;  // faults when it is not text

 private:
  std::string_view callee_;
  std::vector<std::string_view> names_;
  std::vector<std::optional<Value>> values_;
};

}  // namespace hexad::text::jinja
