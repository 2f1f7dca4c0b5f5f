// From a name in the configuration to a plugin's vtables: data first, code last.
#pragma once
#include <string>

#include <hexad/abi.h>

#include "core/manifest/discovery.hpp"
#include "core/manifest/manifest.hpp"
#include "core/manifest/options.hpp"
#include "lib/base/file/resolved_file.hpp"
#include "runtime/runtime.h"

namespace hexad::plugin {

// A plugin whose code is in this process, or in one of its own (core/plugin/confined), for the rest of this process's
// life.
struct LoadedPlugin {
  Manifest manifest;
  std::string path;  // absolute, of the library
  const hexad_plugin_desc* desc = nullptr;
  const hexad_host* host = nullptr;       // what its create takes
  hexad_plugin_query_fn query = nullptr;  // null in a process of its own

  Kind kind() const { return manifest.kind; }
  // "loss 'my_loss' 1.2.0 (/path/libmy_loss.so, sha256 12ab34cd...)": how messages begin.
  std::string label() const;
};

// Opens a library that has been checked (precheck.hpp) and takes the plugin that the manifest means. Throws
// Error(plugin), also if what the loader has opened is not this file.
LoadedPlugin open_plugin(const Manifest& manifest, const ResolvedFile& file, const hexad_host* host);

// Finds and loads plugins under one set of options. Libraries are never unloaded: two registries share them.
class Registry {
 public:
  // `runtime` is this process's device half, or null in a process without LibTorch; it must outlive the process's
  // plugins.
  Registry(Options options, const hexad_runtime* runtime);

  // Loads what `name` (a name or a path) means. Throws Error(plugin) with every reason of the loading
  // procedure: not found, insecure, not pinned, digest, ELF, versions of LibTorch, CUDA and glibc (all before the code
  // is opened), undefined symbols, descriptor. A plugin of options.own_process gets a process of its own; Error(config)
  // for a backend among them. The reference is valid for the life of the process. Thread-safe.
  const LoadedPlugin& load(Kind kind, const std::string& name);
  // The same of a plugin that has been found.
  const LoadedPlugin& load(const Candidate& candidate);

  const Options& options() const { return options_; }
  const hexad_runtime* runtime() const { return runtime_; }

 private:
  const LoadedPlugin& load(const Candidate& candidate, const std::string& name);

  Options options_;
  const hexad_runtime* runtime_;
};

// The descriptor of a chain that the manifest means, after the checks of sizes, kind, name, min_host_minor and of its
// vtable's required functions. Throws Error(plugin).
const hexad_plugin_desc* select_descriptor(const hexad_plugin_desc* first, const Manifest& manifest,
                                           const std::string& path);

}  // namespace hexad::plugin
