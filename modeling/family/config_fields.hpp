// Typed access to the keys of a config.json: null counts as absent, as in transformers; errors name file and key.
#pragma once
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "modeling/error.hpp"

namespace hexad::modeling {

// More than any model has, so that the product of a count and two sizes fits 64 bits.
constexpr int64_t kMostSize = int64_t{1} << 24;   // of a dimension
constexpr int64_t kMostCount = int64_t{1} << 14;  // layers, heads, experts, elements of a head

class ConfigFields {
 public:
  ConfigFields(const nlohmann::json& object, std::string origin) : object_(object), origin_(std::move(origin)) {
    if (!object_.is_object()) fail("{}: expected a JSON object, got {}", origin_, object_.type_name());
  }

  const std::string& origin() const { return origin_; }
  bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  bool mentions(const char* key) const { return object_.contains(key); }  // null or not
  const nlohmann::json& raw(const char* key) const { return object_.at(key); }

  std::optional<int64_t> integer(const char* key) const {
    if (!has(key)) return {};
    if (!raw(key).is_number_integer()) wrong(key, "an integer");
    return raw(key).get<int64_t>();
  }
  std::optional<double> number(const char* key) const {
    if (!has(key)) return {};
    if (!raw(key).is_number()) wrong(key, "a number");
    return raw(key).get<double>();
  }
  std::optional<bool> boolean(const char* key) const {
    if (!has(key)) return {};
    if (!raw(key).is_boolean()) wrong(key, "true or false");
    return raw(key).get<bool>();
  }
  std::optional<std::string> text(const char* key) const {
    if (!has(key)) return {};
    if (!raw(key).is_string()) wrong(key, "a text");
    return raw(key).get<std::string>();
  }
  int64_t size(const char* key, std::optional<int64_t> fallback = {}, int64_t most = kMostSize) const {
    const std::optional<int64_t> value = has(key) ? integer(key) : fallback;
    if (!value) fail("{}: '{}' is missing", origin_, key);
    if (*value <= 0) fail("{}: '{}' is {}, wanted a positive integer", origin_, key, *value);
    if (*value > most) fail("{}: '{}' is {}, wanted at most {}: no model has more", origin_, key, *value, most);
    return *value;
  }
  int64_t count(const char* key, std::optional<int64_t> fallback = {}) const { return size(key, fallback, kMostCount); }

  [[noreturn]] void wrong(const char* key, const char* wanted) const {
    fail("{}: '{}' is {}, wanted {}", origin_, key, raw(key).dump(), wanted);
  }

 private:
  const nlohmann::json& object_;
  std::string origin_;
};

}  // namespace hexad::modeling
