// Plugins that the build made below HEXAD_BUILD_DIR/tests/abi, loaded as a user's are.
#pragma once
#include <dlfcn.h>

#include <string>

#include "core/plugin/loader.hpp"
#include "tests/plugin/plugin_folder.hpp"

namespace abi_test {

inline std::filesystem::path folder_from(const char* variable) {
  const char* value = std::getenv(variable);
  REQUIRE_MESSAGE(value != nullptr, std::string(variable) << " is not set; ctest sets it");
  return value;
}

// Copies lib<name>.so of a subfolder into a folder of its own, with a manifest.
class BuiltPlugin {
 public:
  BuiltPlugin(const std::string& subfolder, hexad::plugin::Kind kind, const std::string& name)
      : kind_(kind), name_(name), library_(folder_.path() / ("lib" + name + ".so")) {
    std::filesystem::copy_file(folder_from("HEXAD_BUILD_DIR") / "tests/abi" / subfolder / library_.filename(),
                               library_);
    folder_.write_manifest(library_, name, {{"kind", hexad::plugin::kind_name(kind)}});
  }

  const std::filesystem::path& folder() const { return folder_.path(); }

  // Through the whole loading procedure.
  const hexad::plugin::LoadedPlugin& load() const {
    hexad::plugin::Options options;
    options.paths = {folder_.path()};
    return hexad::plugin::Registry(options, nullptr).load(kind_, name_);
  }

  // The same plugin as it sees itself on another host table, from its query on.
  hexad::plugin::LoadedPlugin load_on(const hexad_host* host) const {
    hexad::plugin::LoadedPlugin plugin = load();
    void* library = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library != nullptr, library_);
    plugin.host = host;
    plugin.desc = reinterpret_cast<hexad_plugin_query_fn>(dlsym(library, "hexad_plugin_query_v1"))(host);
    return plugin;
  }

 private:
  plugin_test::PluginFolder folder_;
  hexad::plugin::Kind kind_;
  std::string name_;
  std::filesystem::path library_;
};

}  // namespace abi_test
