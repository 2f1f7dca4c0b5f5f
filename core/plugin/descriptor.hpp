// The checks of what a plugin's query function returned.
#pragma once
#include <string>

#include <hexad/abi.h>

#include "core/manifest/manifest.hpp"

namespace hexad::plugin {

// The descriptor of a chain that the manifest means, after the checks of sizes, kind, name, min_host_minor and of its
// vtable's required functions. Throws Error(plugin).
const hexad_plugin_desc* select_descriptor(const hexad_plugin_desc* first, const Manifest& manifest,
                                           const std::string& path);

}  // namespace hexad::plugin
