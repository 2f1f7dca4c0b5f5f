// Typed access to the keys of a config.json: null counts as absent, as in transformers; errors name file and key.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::model {

// More than any model has, so that the product of a count and two sizes fits 64 bits.
constexpr int64_t kMostSize = int64_t{1} << 24;   // of a dimension
constexpr int64_t kMostCount = int64_t{1} << 14;  // layers, heads, experts, elements of a head

// Refers to the object. What it throws is model::Error.
class ConfigFields {
 public:
  // Throws where it is no object.
  ConfigFields(const nlohmann::json& object, std::string origin);

  const std::string& origin() const { return origin_; }
  bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
  bool mentions(const char* key) const { return object_.contains(key); }  // null or not
  const nlohmann::json& raw(const char* key) const { return object_.at(key); }

  // Nothing where the key is absent; they throw where it is of another type.
  std::optional<int64_t> integer(const char* key) const;
  std::optional<double> number(const char* key) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> text(const char* key) const;
  // 1 to `most`; throws where the key is absent and there is no fallback.
  int64_t size(const char* key, std::optional<int64_t> fallback = {}, int64_t most = kMostSize) const;
  int64_t count(const char* key, std::optional<int64_t> fallback = {}) const { return size(key, fallback, kMostCount); }

  [[noreturn]] void wrong(const char* key, const char* wanted) const;

 private:
  const nlohmann::json& object_;
  std::string origin_;
};

}  // namespace hexad::model
