// The process of one confined plugin, from within: `hexad plugin-process`.
#pragma once

namespace hexad::plugin::confined {

inline constexpr const char* kCommand = "plugin-process";
inline constexpr int kControlDescriptor = 3;  // where it finds its control socket

// Serves the plugin that the engine's process asks for, until that process ends; then leaves by _exit. Returns, with a
// usage error's code, only if it was not started by the engine.
int serve();

}  // namespace hexad::plugin::confined
