#include "lib/model/family/config_fields.hpp"

#include <utility>

#include "lib/model/error.hpp"

namespace hexad::model {

ConfigFields::ConfigFields(const nlohmann::json& object, std::string origin)
    : object_(object), origin_(std::move(origin)) {
  if (!object_.is_object()) fail("{}: expected a JSON object, got {}", origin_, object_.type_name());
}

std::optional<int64_t> ConfigFields::integer(const char* key) const {
  if (!has(key)) return {};
  if (!raw(key).is_number_integer()) wrong(key, "an integer");
  return raw(key).get<int64_t>();
}

std::optional<double> ConfigFields::number(const char* key) const {
  if (!has(key)) return {};
  if (!raw(key).is_number()) wrong(key, "a number");
  return raw(key).get<double>();
}

std::optional<bool> ConfigFields::boolean(const char* key) const {
  if (!has(key)) return {};
  if (!raw(key).is_boolean()) wrong(key, "true or false");
  return raw(key).get<bool>();
}

std::optional<std::string> ConfigFields::text(const char* key) const {
  if (!has(key)) return {};
  if (!raw(key).is_string()) wrong(key, "a text");
  return raw(key).get<std::string>();
}

int64_t ConfigFields::size(const char* key, std::optional<int64_t> fallback, int64_t most) const {
  const std::optional<int64_t> value = has(key) ? integer(key) : fallback;
  if (!value) fail("{}: '{}' is missing", origin_, key);
  if (*value <= 0) fail("{}: '{}' is {}, wanted a positive integer", origin_, key, *value);
  if (*value > most) fail("{}: '{}' is {}, wanted at most {}: no model has more", origin_, key, *value, most);
  return *value;
}

void ConfigFields::wrong(const char* key, const char* wanted) const {
  fail("{}: '{}' is {}, wanted {}", origin_, key, raw(key).dump(), wanted);
}

}  // namespace hexad::model
