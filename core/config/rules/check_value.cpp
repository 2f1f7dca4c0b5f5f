#include "core/config/rules/check_keys.hpp"

#include <cmath>

#include "core/config/load/defaults.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config {
namespace {

// Bounds are written as a person would: 1, 0.5.
std::string bound_text(double bound) { return fmt::format("{}", bound); }

bool in_range(const Key& key, double number) {
  if (std::isnan(number)) return std::isinf(key.minimum) && std::isinf(key.maximum);
  const bool low_enough = key.minimum_excluded ? number > key.minimum : number >= key.minimum;
  return low_enough && number <= key.maximum;
}

std::optional<std::string> choice_problem(const Key& key, const std::string& text, bool dormant);

std::optional<std::string> element_problem(const Key& key, const yaml::Node& list, bool dormant) {
  for (size_t i = 0; i < list.items().size(); ++i) {
    const yaml::Node& item = list.items()[i];
    if (!is_kind(item, key.element_kinds)) {
      return fmt::format("element {} is {}, wanted {}", i, item.describe(), kinds_text(key.element_kinds));
    }
    if (!item.is_string()) continue;
    if (const auto problem = choice_problem(key, item.as_string(), dormant)) return problem;
  }
  return std::nullopt;
}

std::optional<std::string> choice_problem(const Key& key, const std::string& text, bool dormant) {
  if (std::ranges::find(key.choices, text) != key.choices.end()) return std::nullopt;
  const std::string wanted = joined(key.choices);
  if (std::ranges::find(key.not_built, text) != key.not_built.end()) {
    if (dormant) return std::nullopt;
    return fmt::format("'{}' is not available in this version{}", text, wanted.empty() ? "" : "; wanted " + wanted);
  }
  if (key.choices.empty()) return std::nullopt;
  const std::optional<std::string> near = nearest_choice(text, key.choices);
  return fmt::format("got '{}', wanted one of {}{}", text, wanted,
                     near ? fmt::format("; did you mean {}?", *near) : "");
}

std::optional<std::string> feature_problem(const Key& key, const yaml::Node& value) {
  if (key.status != Status::unavailable || key.off.empty()) return std::nullopt;
  for (const std::string& off : key.off) {
    if (same_value(default_value(off), value)) return std::nullopt;
  }
  return fmt::format("{} is not available in this version: got {}, wanted {}", key.note, value.describe(),
                     key.off.front());
}

}  // namespace

bool is_kind(const yaml::Node& value, Kinds kinds) {
  if (value.is_null()) return kinds & kNull;
  if (value.is_bool()) return kinds & kBool;
  if (value.is_int()) return kinds & (kInt | kFloat);
  if (value.is_double()) {
    const double number = value.as_double();
    return (kinds & kFloat) || ((kinds & kInt) && std::trunc(number) == number && std::abs(number) < 9e15);
  }
  if (value.is_string()) return kinds & kText;
  return kinds & (value.is_list() ? kList : kMap);
}

std::string kinds_text(Kinds kinds) {
  if (kinds == kAny) return "anything";
  std::vector<std::string> names;
  if (kinds & kBool) names.push_back("true or false");
  if (kinds & kFloat) {
    names.push_back("a number");
  } else if (kinds & kInt) {
    names.push_back("an integer");
  }
  if (kinds & kText) names.push_back("text");
  if (kinds & kList) names.push_back("a list");
  if (kinds & kMap) names.push_back("a mapping");
  if (kinds & kNull) names.push_back("null");
  return joined(names, " or ");
}

std::string range_text(const Key& key) {
  std::vector<std::string> parts;
  if (!std::isinf(key.minimum)) {
    parts.push_back((key.minimum_excluded ? "above " : "at least ") + bound_text(key.minimum));
  }
  if (!std::isinf(key.maximum)) parts.push_back("at most " + bound_text(key.maximum));
  std::string result = joined(parts);
  if (!key.choices.empty()) result += fmt::format("one of {}", joined(key.choices));
  return result;
}

std::optional<std::string> value_problem(const Key& key, const yaml::Node& value, bool dormant) {
  if (value.is_string() && value.as_string() == "???") return "a mandatory value that nothing sets; give it one";
  if (!is_kind(value, key.kinds)) {
    return fmt::format("got {}, wanted {}", value.describe(), kinds_text(key.kinds));
  }
  if (value.is_number() && !in_range(key, value.as_double())) {
    return fmt::format("got {}, wanted {}", value.describe(), range_text(key));
  }
  if (value.is_string()) {
    if (value.as_string().find('\0') != std::string::npos) return "a NUL character, at which names and paths would end";
    if (const auto problem = choice_problem(key, value.as_string(), dormant)) return problem;
  }
  if (value.is_list()) {
    if (const auto problem = element_problem(key, value, dormant)) return problem;
  }
  return dormant ? std::nullopt : feature_problem(key, value);
}

}  // namespace hexad::config
