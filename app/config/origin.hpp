// Where each value of a resolved configuration comes from: `hexad config show --origin`.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "core/config/check.hpp"

namespace hexad::config {

// Where the value at a path was written: "configs/a.yaml:3:7", "override grpo.seed=1", "default" of the engine, or
// "default of NAME (its manifest)" of a plugin.
std::string origin_text(const Loaded& loaded, const std::string& path, const yaml::Location& location);

// The configuration as YAML that reads back to the same values. A key of a plugin that is absent and chosen when the
// run starts stands at the end of its section as a comment, "# key: auto: how". With `origins` each leaf has its origin
// behind it: "key: value  # configs/a.yaml:3:7".
std::string shown_yaml(const Loaded& loaded, bool origins);

// A list of {"key", "value", "origin"}, one for each leaf: a value that is no container, or an empty one; the index of
// a list element is part of its key. Keys that are chosen later have null and "auto: how".
nlohmann::ordered_json origins_json(const Loaded& loaded);

}  // namespace hexad::config
