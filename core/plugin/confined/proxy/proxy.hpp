// A plugin whose code runs in a process of its own, behind the descriptor and the vtable that every plugin has.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include <hexad/abi.h>

#include "core/plugin/call.hpp"
#include "core/plugin/confined/proxy/remote.hpp"
#include "core/plugin/host/services.hpp"
#include "core/plugin/loader.hpp"

namespace hexad::plugin::confined {

// Whether plugins of this kind can be confined. A backend cannot: it has the worker process of its rank.
bool confinable(Kind kind);

// Starts a process that loads the plugin, whose file has been checked, and returns its proxy. Throws Error(plugin) with
// what the plugin's process found, if it refuses the plugin or ends. The process ends with this one.
LoadedPlugin load(const Candidate& candidate, const std::string& path, const Options& options,
                  const hexad_runtime* runtime);

// What LoadedPlugin::host points to: the host table of this process. A vtable's create gets no other word about whose
// it is. Lives as long as the process.
struct ConfinedPlugin : hexad_host {
  ConfinedPlugin(const hexad_host& host, const std::filesystem::path& program, double limit_s)
      : hexad_host(host), remote(program, limit_s) {}

  static ConfinedPlugin& of(const hexad_host* host) {
    return *const_cast<ConfinedPlugin*>(static_cast<const ConfinedPlugin*>(host));
  }
  const char* keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }

  Remote remote;
  std::atomic<uint64_t> last_instance{0};
  hexad_plugin_desc desc{};
  std::deque<std::string> texts;  // of the descriptor
  std::shared_ptr<void> of_kind;  // the vtable and what it points to
  const hexad_runtime* runtime = nullptr;
};

// What stands behind the opaque instance pointer that the host sees.
struct RemoteInstance {
  ConfinedPlugin* plugin;
  uint64_t id;
  const hexad_config* config;
  std::shared_ptr<void> of_kind;  // what lives as long as the instance (a layout)
};

// One function a kind (KIND_proxy.cpp): makes the vtable from the facts that the plugin's process told.
void add_loss(ConfinedPlugin& plugin, Reader& facts);
void add_generator(ConfinedPlugin& plugin, Reader& facts);
void add_environment(ConfinedPlugin& plugin, Reader& facts);

// ---- What the vtables of all kinds share. `Handle` is the kind's opaque instance type.

template <typename Handle>
RemoteInstance& instance_of(Handle* self) {
  return *reinterpret_cast<RemoteInstance*>(self);
}

template <typename Handle>
hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, Handle** out) {
  hexad_code code = HEXAD_OK;
  const hexad_code thrown = guarded(call, [&] {
    ConfinedPlugin& plugin = ConfinedPlugin::of(host);
    auto made = std::make_unique<RemoteInstance>(RemoteInstance{&plugin, ++plugin.last_instance, config, nullptr});
    code = plugin.remote.call(call, "create", made->id, config, Request());
    if (code == HEXAD_OK) *out = reinterpret_cast<Handle*>(made.release());
  });
  return thrown != HEXAD_OK ? thrown : code;
}

void destroy(RemoteInstance* instance);
template <typename Handle>
void destroy(Handle* self) {
  destroy(&instance_of(self));
}

// Makes a request with write(request), calls, and reads the results with read(reader).
template <typename Handle, typename Write, typename Read>
hexad_code invoke(Handle* self, hexad_call* call, const char* function, Write&& write, Read&& read) {
  hexad_code code = HEXAD_OK;
  const hexad_code thrown = guarded(call, [&] {
    RemoteInstance& instance = instance_of(self);
    Request request(instance.plugin->runtime);
    write(request);
    code = instance.plugin->remote.call(call, function, instance.id, instance.config, request, read);
  });
  return thrown != HEXAD_OK ? thrown : code;
}
template <typename Handle, typename Write>
hexad_code invoke(Handle* self, hexad_call* call, const char* function, Write&& write) {
  return invoke(self, call, function, write, [](Reader&) {});
}
template <typename Handle>
hexad_code invoke(Handle* self, hexad_call* call, const char* function) {
  return invoke(self, call, function, [](Request&) {});
}

}  // namespace hexad::plugin::confined
