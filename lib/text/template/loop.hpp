// The `loop` variable of a for statement.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "lib/text/template/value/value.hpp"

namespace hexad::text::jinja {

struct ForStatement;
struct Scope;

// Walks an iterable one item ahead at most, so that a generator is not asked for more than Jinja asks it.
struct LoopState {
  LoopState(Value iterable, int depth0, Budget& budget)
      : iterable(std::move(iterable)), next(iterate(this->iterable, budget)), depth0(depth0) {}

  Value iterable;
  Iterator next;
  int depth0;  // of recursive loops
  int64_t index0 = -1;
  Value current = Undefined{}, before = Undefined{};
  std::optional<Value> ahead;                      // read but not yet current
  std::optional<std::vector<Value>> last_changed;  // arguments of the last changed()
  std::optional<int64_t> counted;
  const ForStatement* statement = nullptr;  // for recursive calls; null when the loop is not recursive
  std::weak_ptr<Scope> scope;

  bool advance();
  bool has_next();
  int64_t length(Budget& budget);
};

// loop.<name>; nullopt when a loop has no such attribute.
std::optional<Value> loop_attribute(const Value& loop, std::string_view name, Budget& budget);

}  // namespace hexad::text::jinja
