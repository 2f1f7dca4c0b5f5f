// Settings of another system, over that system's own defaults.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"
#include "lib/yaml/override.hpp"

namespace hexad::compat {

// Remembers which keys were asked for, so that the others can be named.
class Foreign {
 public:
  // `defaults` is the text of a YAML map. References (`${a.b}`) are resolved over both. Throws Error(config) where one
  // leads nowhere.
  Foreign(yaml::Node given, const std::string& defaults);

  // Values or their defaults; nothing for null and for what neither has. Another type is an Error(config) that names
  // file, line and key. A text that holds a number counts as that number, false as the text "no" (YAML 1.1's `no`).
  bool flag(const std::string& key);
  std::optional<int64_t> integer(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::optional<std::string> text(const std::string& key);
  // A text, or a list of texts.
  std::vector<std::string> texts(const std::string& key);
  const yaml::Node* value(const std::string& key);
  // What the file itself says; null if it says nothing.
  const yaml::Node* given(const std::string& key);
  // A text that has to be there, and an integer of at least `least`.
  std::string wanted_text(const std::string& key);
  int64_t count(const std::string& key, int64_t least = 1);

  // Throws Error(config) about a key: "file:line:column: key: message".
  [[noreturn]] void refuse(const std::string& key, const std::string& message) const;

  // Keys of the file that nobody asked for and that ask for something: whose value is neither the default nor, where
  // none is known, null, false or empty. Those below a section of `quiet` are left out.
  std::vector<std::string> unread(std::span<const std::string_view> quiet) const;

 private:
  const yaml::Node* find(const std::string& key);
  void add_unread(const yaml::Node& map, const std::string& path, std::span<const std::string_view> quiet,
                  std::vector<std::string>& out) const;

  yaml::Node defaults_, given_, all_;
  std::set<std::string> read_;
};

// The file at `path` (YAML, or JSON, which is YAML) with overrides of its keys: `key=value`, `+key=value`, `~key`.
// Throws Error(config).
yaml::Node read_foreign(const std::string& path, const std::vector<std::string>& overrides);

// Why the setting is not carried over: what its table says of a name that has no key here, else that nothing is known
// of it.
std::string why_left_out(std::span<const config::OtherName> names, const std::string& key);

}  // namespace hexad::compat
