// What the engine adds to the section that a plugin reads. sdk/ABI.md has the same table.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "core/manifest/manifest.hpp"

namespace hexad::plugin {

struct HostKey {
  std::string_view name;  // a path within the section
  std::string_view type;  // as in sdk/CONFIG.md
  std::vector<Kind> kinds;
  std::string_view meaning;
};

std::span<const HostKey> host_keys();

}  // namespace hexad::plugin
