// What a plugin's manifest says of its configuration (sdk/CONFIG.md): keys, facts, rules, and when it is chosen. Paths
// are relative to the block that chooses the plugin.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/schema/schema.hpp"
#include "core/manifest/manifest.hpp"
#include "lib/expression/expression.hpp"
#include "lib/expression/message.hpp"

namespace hexad::config {

// "...; nearest: 2 or 4": the values of `it`, from 1 to `most`, that are nearest to `value` and for which `holds` is
// true.
struct Nearest {
  expression::Expression value, most, holds;
};

// What must hold between keys.
struct DeclaredRule {
  std::optional<expression::Expression> when;
  expression::Expression require;
  std::string key;  // that the message is about
  expression::Message message;
  bool notice = false;
  std::optional<Nearest> nearest;
};

// A fact's expression, or one for each member of a fact that is a map.
struct Fact {
  std::optional<expression::Expression> when;  // otherwise the fact is not there
  std::optional<expression::Expression> value;
  std::map<std::string, expression::Expression> members;
};

struct Declaration {
  plugin::Kind kind = plugin::Kind::backend;
  std::string plugin;    // its name
  std::string manifest;  // the file that says so
  std::vector<std::string> named;
  std::vector<std::pair<std::string, yaml::Node>> select;
  std::vector<Key> keys;
  std::vector<std::pair<std::string, expression::Expression>> lets;  // named expressions, each over the ones before it
  std::map<std::string, Fact, std::less<>> facts;
  std::vector<DeclaredRule> rules;
  std::vector<std::string> reads;
  std::vector<nlohmann::ordered_json> verify_configs;  // of the conformance kit: path -> value

  const Key* find(std::string_view path) const;
};

// The `config` of a manifest: an object, or the text of a keys.yaml. Nothing if the manifest has none. Throws
// Error(plugin) with the manifest's file, the key or rule, what was got and wanted.
std::optional<Declaration> read_declaration(const plugin::Manifest& manifest, const std::string& where);

// keys.yaml as the manifest holds it, checked. Throws Error(plugin) or Error(config) with file, line and key.
nlohmann::ordered_json compile_declaration(const std::filesystem::path& keys_yaml, plugin::Kind kind,
                                           const std::string& plugin);

}  // namespace hexad::config
