// What all kinds of instance share: the plugin, its configuration, and how a failed call becomes an exception.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/plugin/call.hpp"
#include "core/plugin/crash_report.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/plugin_config.hpp"
#include "lib/base/error.hpp"

namespace hexad::plugin {

// A plugin function failed. The text begins with the plugin and the function:
// "loss 'my_loss' 1.2.0 (/path, sha256 12ab34cd...): compute at step 812: INVALID_ARGUMENT: ...".
class PluginError : public Error {
 public:
  PluginError(hexad_code code, std::string message) : Error(ErrorKind::plugin, std::move(message)), code_(code) {}
  hexad_code code() const { return code_; }  // UNAVAILABLE may be retried, CANCELLED unwinds, the rest end the run

 private:
  hexad_code code_;
};

// "LABEL: FUNCTION at step N: WHAT (rule R3 of the ABI): the plugin is faulty, tell its author".
std::string broken_rule(const std::string& label, std::string_view function, int64_t step, const char* rule,
                        const std::string& what);

// Not copyable, not movable: the plugin holds the address of the configuration.
class Instance {
 public:
  const LoadedPlugin& plugin() const { return plugin_; }
  const hexad_host* host() const { return plugin_.host; }

 protected:
  Instance(const LoadedPlugin& plugin, Kind kind, PluginConfig config);
  ~Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // Calls function(hexad_call*), which returns a hexad_code; throws PluginError if it is not HEXAD_OK, if the plugin
  // gave no text (its fault, and said so), or if a C++ exception came across the ABI.
  template <typename Function>
  void invoke(const CallContext& context, std::string_view name, Function&& function) const {
    Call call(context, who_);
    const CrashMark mark(label_, name, context.step);
    step_ = context.step;
    hexad_code code = HEXAD_OK;
    try {
      code = function(call.handle());
    } catch (...) {
      raise_thrown(context, name);
    }
    if (code != HEXAD_OK) raise(call, name, code);
  }
  // Calls a function of the vtable that cleans up and cannot fail. What it throws ends the process, as a crash does.
  template <typename Function>
  void clean_up(std::string_view name, Function&& function) const noexcept {
    const CrashMark mark(label_, name, step_);
    function();
  }
  // Calls the vtable's create; a plugin that succeeds without an instance is faulty.
  template <typename Vtable, typename Handle>
  void create_instance(const CallContext& context, const Vtable* vtable, Handle*& self) {
    invoke(context, "create", [&](hexad_call* call) {
      const hexad_code code = vtable->create(host(), call, config_.handle(), &self);
      if (code != HEXAD_OK || self) return code;
      return Call::from(call).set_error(HEXAD_INTERNAL, "returned OK and no instance: the plugin is faulty");
    });
  }
  // Throws Error(config) if keys of plugin_config were not read by create.
  void require_all_keys_read() const;
  // Throws PluginError(INTERNAL) for what a function gave against a rule of sdk/ABI.md.
  [[noreturn]] void refuse(const CallContext& context, std::string_view name, const char* rule,
                           const std::string& what) const;
  // Throws PluginError(INTERNAL) for a list of weights that makes no sense; `carries`: with their data.
  void require_slices(const CallContext& context, std::string_view name, const hexad_weight_list& list,
                      bool carries = false) const;
  // Throws PluginError(UNIMPLEMENTED) if an optional function is missing.
  void require_function(const CallContext& context, std::string_view name, bool present) const;

  PluginConfig config_;

 private:
  [[noreturn]] void raise(const Call& call, std::string_view name, hexad_code code) const;
  [[noreturn]] void raise_thrown(const CallContext& context, std::string_view name) const;  // in a catch block

  const LoadedPlugin& plugin_;
  std::string who_, label_;
  mutable std::atomic<int64_t> step_ = 0;  // of the last call
};

}  // namespace hexad::plugin
