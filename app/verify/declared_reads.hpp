// What a plugin reads of its configuration, beside what its manifest declares (sdk/CONFIG.md) and what the engine adds.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/declaration/declaration.hpp"
#include "core/manifest/manifest.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::plugin {

struct DeclaredFinding {
  bool warning = false;
  std::string rule;  // kUndeclaredKey, ...
  std::string key;   // as it is read, or as it is declared where nothing reads it
  std::string text;  // names the key
};
inline constexpr const char* kUndeclaredKey = "undeclared key";
inline constexpr const char* kOtherDefault = "declared default";
inline constexpr const char* kWholeSection = "section as JSON";
inline constexpr const char* kUnreadKey = "unread key";

// What the engine adds to the section that a plugin reads. sdk/ABI.md has the same table.
struct HostKey {
  std::string_view name;  // a path within the section
  std::string_view type;  // as in sdk/CONFIG.md
  std::vector<Kind> kinds;
  std::string_view meaning;
};

std::span<const HostKey> host_keys();

// What becomes of a declared key that none of the configurations was asked for. `ignore` is for reads that are not all
// there, as those of a create that failed.
enum class Unread { ignore, warn, fail };

// `creates`: the configurations of one create each, which have recorded what it read. A rule names a key once. Not to
// be read are keys without an effect, those that choose the plugin, maps whose keys are declared, maps that stand for
// another, and keys that the engine itself takes from the facts (learning_rate, max_grad_norm, schedule).
std::vector<DeclaredFinding> check_reads(const config::Declaration& declaration,
                                         std::span<const PluginConfig* const> creates, Unread unread);

}  // namespace hexad::plugin
