#include "lib/text/template/function/arguments.hpp"

#include <algorithm>

namespace hexad::text::jinja {

Bound::Bound(std::string_view callee, Arguments& arguments, std::initializer_list<std::string_view> names,
             size_t required)
    : callee_(callee), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size()) {
    fault("{}() takes at most {} arguments, got {}", callee, names_.size(), arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto place = std::find(names_.begin(), names_.end(), name);
    if (place == names_.end()) fault("{}() got an unexpected keyword argument '{}'", callee, name);
    std::optional<Value>& slot = values_[static_cast<size_t>(place - names_.begin())];
    if (slot) fault("{}() got multiple values for argument '{}'", callee, name);
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i]) fault("{}() misses its argument '{}'", callee, names_[i]);
  }
}

int64_t Bound::integer(size_t index, int64_t fallback) const {
  if (!has(index)) return fallback;
  if (at(index).is_undefined()) fault_undefined(at(index));
  if (!at(index).is_integer())
    fault("{}(): argument '{}' must be an integer, not {}", callee_, names_[index], type_name(at(index)));
  return static_cast<int64_t>(std::clamp<Int>(at(index).integer(), INT64_MIN, INT64_MAX));
}

std::string Bound::text(size_t index, std::string_view fallback) const {
  if (!has(index)) return std::string(fallback);
  if (at(index).is_undefined()) fault_undefined(at(index));
  if (!at(index).text())
    fault("{}(): argument '{}' must be a str, not {}", callee_, names_[index], type_name(at(index)));
  return at(index).text()->bytes;
}

}  // namespace hexad::text::jinja
