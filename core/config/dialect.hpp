// What files of other systems hold for plugins that may not be installed here: names of sections and their switches,
// and of engines. A plugin that arrives and owns a section, or serves an engine, takes its row over without a change
// here.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace hexad::config {

struct DialectSection {
  std::string_view block;    // that it stands in
  std::string_view section;  // its name there
  std::string_view key;      // its switch; empty: it has none
  std::string_view plugin;   // that owns it
};
std::span<const DialectSection> dialect_sections();

inline constexpr const char* kDefaultGenerator = "native";

// An engine that NeMo-RL's `policy.generation.backend` names and that is read as the default generator while no plugin
// serves it.
bool is_foreign_engine(std::string_view name);

}  // namespace hexad::config
