#include "lib/text/tokenizer/step/component.hpp"

#include "lib/base/json.hpp"

namespace hexad::text {
namespace {

constexpr int kDeepest = 16;

// A short rendering of a value for an error message.
std::string shown(const nlohmann::json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const std::string text = json_text(value);
  return text.size() <= 40 ? text : fmt::format("{:.40}...", text);
}

}  // namespace

Component::Component(const nlohmann::json& value, std::string where) : Component(value, std::move(where), 0) {}

Component::Component(const nlohmann::json& value, std::string where, int depth)
    : value_(value), where_(std::move(where)), depth_(depth) {
  if (!value_.is_object()) refuse("wanted an object, got {}", shown(value_));
  if (depth_ > kDeepest) refuse("components are nested deeper than {}", kDeepest);
}

bool Component::has(const char* key) const {
  const auto found = value_.find(key);
  return found != value_.end() && !found->is_null();
}

const nlohmann::json& Component::get(const char* key, const char* wanted,
                                     bool (nlohmann::json::*is)() const noexcept) const {
  const auto found = value_.find(key);
  if (found == value_.end()) refuse("\"{}\" is missing; wanted {}", key, wanted);
  if (!((*found).*is)()) refuse("\"{}\" wants {}, got {}", key, wanted, shown(*found));
  return *found;
}

std::string Component::text(const char* key) const {
  return get(key, "a string", &nlohmann::json::is_string).get<std::string>();
}

std::string Component::text_or(const char* key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

bool Component::boolean_or(const char* key, bool fallback) const {
  return has(key) ? get(key, "true or false", &nlohmann::json::is_boolean).get<bool>() : fallback;
}

int64_t Component::integer(const char* key, int64_t lowest, int64_t highest) const {
  const nlohmann::json& value = get(key, "a whole number", &nlohmann::json::is_number_integer);
  const bool too_big = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(highest);
  if (too_big || value.get<int64_t>() < lowest || value.get<int64_t>() > highest) {
    refuse("\"{}\" wants a number from {} to {}, got {}", key, lowest, highest, shown(value));
  }
  return value.get<int64_t>();
}

const nlohmann::json& Component::array(const char* key) const { return get(key, "a list", &nlohmann::json::is_array); }

Component Component::child(const char* key) const {
  return Component(get(key, "an object", &nlohmann::json::is_object), fmt::format("{}.{}", where_, key), depth_ + 1);
}

std::vector<Component> Component::children(const char* key) const {
  std::vector<Component> result;
  for (const nlohmann::json& element : array(key)) {
    result.push_back(Component(element, fmt::format("{}.{}[{}]", where_, key, result.size()), depth_ + 1));
  }
  return result;
}

void Component::refuse_type(std::string_view supported) const {
  refuse("type \"{}\" is not supported; supported: {}", type(), supported);
}

TextPattern::TextPattern(const Component& owner) {
  const Component pattern = owner.child("pattern");
  if (pattern.has("String")) {
    literal_ = pattern.text("String");
    if (literal_.empty()) regex_.emplace("(?:)", pattern.where());
  } else if (pattern.has("Regex")) {
    regex_source_ = pattern.text("Regex");
    regex_.emplace(regex_source_, pattern.where());
  } else {
    pattern.refuse("wanted \"String\" or \"Regex\"");
  }
}

void TextPattern::find_all(std::string_view text, std::vector<Regex::Match>& matches) const {
  if (regex_) return regex_->find_all(text, matches);
  matches.clear();
  for (size_t at = 0; (at = text.find(literal_, at)) != std::string_view::npos; at += literal_.size()) {
    matches.push_back({at, at + literal_.size()});
  }
}

}  // namespace hexad::text
