// What the process of a confined plugin does for one kind of plugin: one file a kind (KIND_server.cpp).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/plugin/confined/serve/served_call.hpp"
#include "core/plugin/host/services.hpp"
#include "core/plugin/loader.hpp"

namespace hexad::plugin::confined {

class KindServer {
 public:
  virtual ~KindServer() = default;
  // What the proxy makes its vtable from, in the order in which add_KIND reads it.
  virtual void facts(Writer& out) const = 0;
  // Reads the arguments, calls the plugin, writes the results. From several threads where the ABI allows that.
  virtual hexad_code serve(std::string_view function, ServedCall& call) = 0;
};

// Throws Error(plugin) for a kind that cannot be confined.
std::unique_ptr<KindServer> make_kind_server(const LoadedPlugin& plugin);
std::unique_ptr<KindServer> serve_loss(const LoadedPlugin& plugin);
std::unique_ptr<KindServer> serve_generator(const LoadedPlugin& plugin);
std::unique_ptr<KindServer> serve_environment(const LoadedPlugin& plugin);

// create, destroy and the search for the instance, which are alike in all kinds. `Functions` are the others by name.
template <typename Vtable, typename Handle>
class InstanceServer : public KindServer {
 public:
  using Function = hexad_code (*)(const Vtable& vtable, Handle* self, ServedCall& call);
  using Functions = std::map<std::string_view, Function>;

  InstanceServer(const LoadedPlugin& plugin, const Vtable* vtable, const Functions& functions)
      : plugin_(plugin), vtable_(*vtable), functions_(functions) {}

  hexad_code serve(std::string_view function, ServedCall& call) override {
    if (function == "create") return create(call);
    Handle* self = find(call.instance);
    if (function == "destroy") {
      vtable_.destroy(self);
      const std::scoped_lock lock(mutex_);
      instances_.erase(call.instance);
      return HEXAD_OK;
    }
    const auto found = functions_.find(function);
    if (found == functions_.end()) throw BadPacket("a function of another kind");
    return found->second(vtable_, self, call);
  }

 protected:
  const LoadedPlugin& plugin_;
  const Vtable& vtable_;

 private:
  struct Instance {
    Handle* self = nullptr;
    std::unique_ptr<ServedConfig> config = std::make_unique<ServedConfig>();
  };

  hexad_code create(ServedCall& call) {
    Instance made;
    const auto* config = reinterpret_cast<const hexad_config*>(made.config.get());
    const hexad_code code = vtable_.create(plugin_.host, call.handle(), config, &made.self);
    if (code != HEXAD_OK) return code;
    if (!made.self) return call.set_error(HEXAD_INTERNAL, "returned OK and no instance: the plugin is faulty");
    const std::scoped_lock lock(mutex_);
    instances_[call.instance] = std::move(made);
    return HEXAD_OK;
  }
  Handle* find(uint64_t id) {
    const std::scoped_lock lock(mutex_);
    const auto found = instances_.find(id);
    if (found == instances_.end()) throw BadPacket("a call of no instance");
    return found->second.self;
  }

  const Functions& functions_;
  std::mutex mutex_;
  std::map<uint64_t, Instance> instances_;
};

}  // namespace hexad::plugin::confined
