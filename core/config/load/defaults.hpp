// The schema's defaults for keys that a configuration leaves out.
#pragma once
#include <nlohmann/json.hpp>

#include "lib/yaml/node.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// The place of a value that nobody wrote.
inline constexpr const char* kDefaultOrigin = "default";

// Adds the default of every effective key that is absent, before interpolations are resolved (defaults hold some).
// A section that is null, or a reference to another, stays as it is. Of the algorithms' blocks the configuration's own
// is completed, and it and `data` only where one of them is present: without them the configuration does not train, and
// score and generate use the rest. `model`: what defaults of the form {model: ...} are read from; null: they give
// nothing.
void fill_defaults(yaml::Node& root, const Schema& schema, const nlohmann::ordered_json& model);

// Makes integers of whole numbers where a key takes integers and no other numbers: 2.0 is 2.
void round_integers(yaml::Node& root, const Schema& schema);

// True if the configuration is one to train with.
bool trains(const yaml::Node& root);

// A key's default as written in the schema; null if it has none.
yaml::Node default_value(const std::string& default_yaml);

}  // namespace hexad::config
