#include "core/plugin/confined/proxy/proxy.hpp"

#include <algorithm>
#include <map>

#include <spdlog/spdlog.h>

#include "core/plugin/host/table.hpp"
#include "core/plugin/loader.hpp"
#include "lib/base/error.hpp"

namespace hexad::plugin::confined {
namespace {

constexpr int64_t kDestroyNs = 10'000'000'000;

using AddKind = void (*)(ConfinedPlugin&, Reader&);
const std::map<Kind, AddKind>& kinds() {
  static const std::map<Kind, AddKind> all = {
      {Kind::loss, add_loss}, {Kind::generator, add_generator}, {Kind::environment, add_environment}};
  return all;
}

void require_host_memory(const Manifest& manifest, const std::string& path) {
  if (manifest.memory.empty() || std::ranges::find(manifest.memory, "host") != manifest.memory.end()) return;
  fail(ErrorKind::plugin,
       "{}: takes CUDA memory alone (its manifest says so), and a process of its own has host memory only. Remove '{}' "
       "from plugins.own_process",
       path, manifest.name);
}

void read_facts(ConfinedPlugin& plugin, Kind kind, Reader& facts) {
  hexad_plugin_desc& desc = plugin.desc;
  desc.struct_size = HEXAD_STRUCT_SIZE(hexad_plugin_desc, next);
  desc.kind = static_cast<int32_t>(kind);
  desc.abi_minor = facts.get<uint32_t>();
  desc.min_host_minor = facts.get<uint32_t>();
  for (const char** text : {&desc.name, &desc.version, &desc.license, &desc.build_id}) {
    if (facts.has()) *text = plugin.keep(facts.text());
  }
  kinds().at(kind)(plugin, facts);
}

// Never freed, like all that is loaded; under the lock of Registry::load.
ConfinedPlugin& new_plugin(const Options& options, const hexad_runtime* runtime) {
  static auto* all = new std::vector<ConfinedPlugin*>;
  const std::filesystem::path program =
      options.program.empty() ? std::filesystem::read_symlink("/proc/self/exe") : options.program;
  all->push_back(new ConfinedPlugin(*host_table(runtime), program, options.call_limit_s));
  all->back()->runtime = runtime;
  return *all->back();
}

// Has the plugin's process load it, and checks what it says of itself.
void load_there(ConfinedPlugin& plugin, const LoadedPlugin& named, const Candidate& candidate) {
  const Manifest& manifest = named.manifest;
  Request request;
  request.arguments.put(static_cast<int32_t>(spdlog::get_level()));
  request.arguments.text(candidate.manifest_path.string());
  request.arguments.text(manifest.sha256);
  request.arguments.put(static_cast<int32_t>(manifest.kind));
  request.arguments.text(manifest.name);
  const std::string label = named.label();
  const CallContext context;
  Call call(context, label);
  const hexad_code code = plugin.remote.call(call.handle(), kLoad, 0, nullptr, request,
                                             [&](Reader& facts) { read_facts(plugin, manifest.kind, facts); });
  if (code == HEXAD_UNAVAILABLE) fail(ErrorKind::plugin, "{}: cannot load: {}", label, call.error_text());
  if (code != HEXAD_OK) throw Error(ErrorKind::plugin, call.error_text());
  select_descriptor(&plugin.desc, manifest, named.path);  // as of any other plugin
}

}  // namespace

bool confinable(Kind kind) { return kinds().contains(kind); }

LoadedPlugin load(const Candidate& candidate, const std::string& path, const Options& options,
                  const hexad_runtime* runtime) {
  const Manifest& manifest = *candidate.manifest;
  require_host_memory(manifest, path);
  ConfinedPlugin& plugin = new_plugin(options, runtime);
  const LoadedPlugin named{manifest, path, &plugin.desc, &plugin, nullptr};
  try {
    load_there(plugin, named, candidate);
  } catch (...) {
    plugin.remote.end();
    throw;
  }
  return named;
}

void destroy(RemoteInstance* instance) {
  CallContext context;
  context.deadline_ns = now_ns() + kDestroyNs;
  Call call(context, "plugin");
  instance->plugin->remote.call(call.handle(), "destroy", instance->id, instance->config, Request());
  delete instance;
}

}  // namespace hexad::plugin::confined
