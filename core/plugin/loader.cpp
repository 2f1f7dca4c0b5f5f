#include "core/plugin/loader.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include <spdlog/spdlog.h>

#include "core/plugin/confined/proxy/proxy.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/precheck.hpp"
#include "lib/base/error.hpp"
#include "lib/base/said/thrown.hpp"
#include "lib/elf/library.hpp"

namespace hexad::plugin {
namespace {

// Everything that was ever loaded; leaked on purpose, because deleters of plugins may run until the process ends.
struct Loaded {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<LoadedPlugin>> plugins;  // by "kind name path"
};
Loaded& loaded() {
  static Loaded* all = new Loaded;
  return *all;
}

hexad_plugin_query_fn query_of(const ResolvedFile& file) {
  set_up_unwinder();
  std::string why;
  void* const library = elf::open_library(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, why);
  void* const query = library ? ::dlsym(library, "hexad_plugin_query_v1") : nullptr;
  if (query) return reinterpret_cast<hexad_plugin_query_fn>(query);
  fail(ErrorKind::plugin, "{}: cannot load: {}. A plugin must not link engine symbols; check its dependencies with ldd",
       file.path().string(), library ? "it has no hexad_plugin_query_v1" : why);
}

// Whether the plugin is to run in a process of its own.
bool confined_by(const Options& options, const Manifest& manifest, const std::string& name) {
  const auto listed = [&](const std::string& text) {
    return std::find(options.own_process.begin(), options.own_process.end(), text) != options.own_process.end();
  };
  if (!listed(manifest.name) && !listed(name)) return false;
  if (confined::confinable(manifest.kind)) return true;
  fail(ErrorKind::config,
       "plugins.own_process names '{}', which is a {} here: a backend already has the worker process of its rank. "
       "Confine the run's other plugins (loss, generator, environments) instead",
       manifest.name, kind_name(manifest.kind));
}

}  // namespace

std::string LoadedPlugin::label() const {
  return fmt::format("{} '{}' {} ({}, sha256 {}...)", kind_name(manifest.kind), manifest.name, manifest.version, path,
                     manifest.sha256.substr(0, 12));
}

LoadedPlugin open_plugin(const Manifest& manifest, const ResolvedFile& file, const hexad_host* host) {
  const std::string path = file.path().string();
  trace("{}: opening", path);
  const hexad_plugin_query_fn query = query_of(file);
  trace("{}: querying", path);
  const hexad_plugin_desc* desc = select_descriptor(query(host), manifest, path);
  note_loaded(manifest);
  return {manifest, path, desc, host, query};
}

Registry::Registry(Options options, const hexad_runtime* runtime) : options_(std::move(options)), runtime_(runtime) {}

const LoadedPlugin& Registry::load(Kind kind, const std::string& name) {
  if (!options_.enabled) {
    fail(ErrorKind::plugin, "{} plugin '{}' is not loaded: plugins.enabled is false", kind_name(kind), name);
  }
  return load(find_plugin(options_, kind, name), name);
}

const LoadedPlugin& Registry::load(const Candidate& candidate) { return load(candidate, candidate.manifest->name); }

const LoadedPlugin& Registry::load(const Candidate& candidate, const std::string& name) {
  const Kind kind = candidate.manifest->kind;
  const std::scoped_lock lock(loaded().mutex);
  trace("{} '{}': manifest {}", kind_name(kind), name, candidate.manifest_path.string());
  const bool own_process = confined_by(options_, *candidate.manifest, name);
  const ResolvedFile file = check_before_load(candidate, options_, runtime_, own_process);
  const std::string path = file.path().string();
  const Manifest& manifest = *candidate.manifest;

  const char* where = own_process ? " in its own process" : "";
  auto& known = loaded().plugins[fmt::format("{} {} {}{}", kind_name(kind), manifest.name, path, where)];
  if (known && known->manifest.sha256 != manifest.sha256) {
    fail(ErrorKind::plugin, "{}: changed since this process loaded it (sha256 {}, now {}). Restart to use the new one",
         path, known->manifest.sha256, manifest.sha256);
  }
  if (known) return *known;
  LoadedPlugin plugin = own_process ? confined::load(candidate, path, options_, runtime_)
                                    : open_plugin(manifest, file, host_table(runtime_));
  plugin.manifest.version = plugin.desc->version;  // what runs, not what was written beside it
  known = std::make_unique<LoadedPlugin>(std::move(plugin));
  spdlog::info("loaded {}{}", known->label(), where);
  return *known;
}

}  // namespace hexad::plugin
