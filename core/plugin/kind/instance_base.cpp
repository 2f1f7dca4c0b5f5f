#include "core/plugin/kind/instance_base.hpp"

namespace hexad::plugin {

Instance::Instance(const LoadedPlugin& plugin, Kind kind, PluginConfig config)
    : config_(std::move(config)),
      plugin_(plugin),
      who_(fmt::format("{} '{}'", kind_name(plugin.kind()), plugin.manifest.name)),
      label_(plugin.label()) {
  if (plugin.kind() != kind) {
    fail(ErrorKind::internal, "{} is used as a {}", plugin.label(), kind_name(kind));
  }
}

void Instance::require_all_keys_read() const {
  std::string all;
  for (const std::string& message : config_.unread_keys(plugin_.manifest.name))
    all += (all.empty() ? "" : "\n") + message;
  if (!all.empty()) throw Error(ErrorKind::config, all);
}

void Instance::require_function(const CallContext& context, std::string_view name, bool present) const {
  if (present) return;
  throw PluginError(HEXAD_UNIMPLEMENTED,
                    fmt::format("{}: {} at step {}: the plugin does not implement it", label_, name, context.step));
}

void Instance::raise(const Call& call, std::string_view name, hexad_code code) const {
  std::string text = call.error_text();
  if (text.empty()) {
    text = "it failed without saying why (host->set_error was not called): the plugin is faulty, tell its author";
  }
  throw PluginError(code,
                    fmt::format("{}: {} at step {}: {}: {}", label_, name, call.context().step, code_name(code), text));
}

void Instance::raise_thrown(const CallContext& context, std::string_view name, const char* what) const {
  throw PluginError(
      HEXAD_INTERNAL,
      fmt::format("{}: {} at step {}: threw a C++ exception across the ABI: {}: the plugin is faulty, tell "
                  "its author",
                  label_, name, context.step, what));
}

}  // namespace hexad::plugin
