#include "core/environment/arguments.hpp"

#include <algorithm>
#include <cmath>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::environment {

Arguments::Arguments(const std::string& name, const Json& values, std::vector<std::string> known)
    : path_("env." + name), values_(values) {
  if (values.is_null()) return;
  if (!values.is_object()) fail(ErrorKind::config, "{}: want a mapping, got {}", path_, json_text(values));
  // Workers and implementation are NeMo-RL's; scoring here is in-process.
  for (const char* accepted : {"num_workers", "stop_strings", "env_name"}) known.emplace_back(accepted);
  for (const auto& entry : values.items()) {
    if (std::find(known.begin(), known.end(), entry.key()) != known.end()) continue;
    const std::string near = did_you_mean(entry.key(), known);
    fail(ErrorKind::config, "{}: unknown key{}", path(entry.key()), near.empty() ? "; known: " + joined(known) : near);
  }
}

const Arguments::Json* Arguments::find(const std::string& key) const {
  return values_.is_object() && values_.contains(key) && !values_.at(key).is_null() ? &values_.at(key) : nullptr;
}

void Arguments::refuse(const std::string& key, const std::string& wanted) const {
  fail(ErrorKind::config, "{}: want {}, got {}", path(key), wanted, json_text(values_.at(key)));
}

bool Arguments::flag(const std::string& key, bool otherwise) const {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::string Arguments::choice(const std::string& key, const std::string& otherwise,
                              const std::vector<std::string>& allowed) const {
  const Json* value = find(key);
  if (!value) return otherwise;
  const bool good =
      value->is_string() && std::find(allowed.begin(), allowed.end(), value->get<std::string>()) != allowed.end();
  if (!good) refuse(key, "one of " + joined(allowed));
  return value->get<std::string>();
}

std::string Arguments::text(const std::string& key, const std::string& otherwise) const {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (!value->is_string()) refuse(key, "a text");
  return value->get<std::string>();
}

std::vector<std::string> Arguments::texts(const std::string& key) const {
  const Json* value = find(key);
  if (!value) return {};
  const bool good =
      value->is_array() && std::all_of(value->begin(), value->end(), [](const Json& v) { return v.is_string(); });
  if (!good) refuse(key, "a list of texts");
  return value->get<std::vector<std::string>>();
}

int64_t Arguments::integer(const std::string& key, int64_t otherwise, int64_t at_least) const {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (!value->is_number_integer() || value->get<int64_t>() < at_least)
    refuse(key, fmt::format("a whole number of at least {}", at_least));
  return value->get<int64_t>();
}

double Arguments::number(const std::string& key, double otherwise) const {
  const Json* value = find(key);
  if (!value) return otherwise;
  if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(key, "a number");
  return value->get<double>();
}

double Arguments::seconds(const std::string& key, double otherwise) const {
  const double value = number(key, otherwise);
  if (!(value > 0)) refuse(key, "seconds, more than 0");
  return value;
}

std::string said_of(const std::string& place, const std::string& named_by, const std::string& message,
                    const std::string& name) {
  const std::string own = "env." + name, unknown = "env_name: ";
  if (message.starts_with(unknown)) return fmt::format("{}.{}: {}", place, named_by, message.substr(unknown.size()));
  const bool about = message.starts_with(own) && message.find_first_of(".:[", own.size()) == own.size();
  return about ? place + message.substr(own.size()) : fmt::format("{}: {}", place, message);
}

}  // namespace hexad::environment
