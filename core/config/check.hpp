// Validates a configuration against the schema and the rules between keys, before anything starts.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/compat.hpp"
#include "core/config/declaration/selection.hpp"
#include "lib/yaml/node.hpp"
#include "core/config/problem.hpp"
#include "core/config/typed/run_facts.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// A configuration with the defaults of the engine and of the plugins that it chooses, before it is checked. A file in a
// form of `compat` is translated, keys that have other names now are moved, and texts that mean another one here are
// replaced (config/load/synonyms.hpp); `problems` is what is said about all that.
struct Loaded {
  yaml::Node root;
  std::vector<Problem> problems;
  Selection selection;
  Schema schema;                 // core's keys, and those of the plugins that take part
  nlohmann::ordered_json model;  // what `model.*` of declarations reads; null: not at hand
  RunFacts facts;
};
Loaded load_with_defaults(const std::filesystem::path& path, const std::vector<std::string>& overrides = {},
                          const Compat& compat = {});

// Everything wrong with a loaded configuration, and a notice for each key that is accepted without being used.
// Unknown keys, types, ranges, choices, features that are not available, rules between keys. Errors come first.
std::vector<Problem> check(const Loaded& loaded);

// A configuration that is valid, with the schema's defaults filled in.
struct Resolved {
  yaml::Node root;
  std::vector<Problem> notices;
  RunFacts facts;
};

// Load + defaults + check. Throws one Error(config) that lists every error, a line each.
// A plain override may add a key that the schema knows.
Resolved resolve(const std::filesystem::path& path, const std::vector<std::string>& overrides = {},
                 const Compat& compat = {});

}  // namespace hexad::config
