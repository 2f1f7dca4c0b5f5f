#include "core/plugin/kind/instance_base.hpp"

#include "lib/base/said/thrown.hpp"

namespace hexad::plugin {

std::string broken_rule(const std::string& label, std::string_view function, int64_t step, const char* rule,
                        const std::string& what) {
  return fmt::format("{}: {} at step {}: {} (rule {} of the ABI): the plugin is faulty, tell its author", label,
                     function, step, what, rule);
}

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

void Instance::refuse(const CallContext& context, std::string_view name, const char* rule,
                      const std::string& what) const {
  throw PluginError(HEXAD_INTERNAL, broken_rule(label_, name, context.step, rule, what));
}

void Instance::require_slices(const CallContext& context, std::string_view name, const hexad_weight_list& list,
                              bool carries) const {
  constexpr int32_t kMostDimensions = 16;
  const auto wrong = [&](const std::string& what) { refuse(context, name, "W1", what); };
  if (list.count < 0 || (list.count > 0 && !list.slices))
    wrong(fmt::format("it lists {} weights, and has no list", list.count));
  for (int64_t i = 0; i < list.count; ++i) {
    const hexad_weight_slice& slice = list.slices[i];
    if (!slice.name || !*slice.name) wrong(fmt::format("weight {} of {} has no name", i, list.count));
    const bool has_shape = slice.ndim == 0 || (slice.global_shape && slice.offsets && slice.shape);
    if (slice.ndim < 0 || slice.ndim > kMostDimensions || !has_shape)
      wrong(fmt::format("'{}' has {} dimensions, wanted 0 to {}, with their extents", slice.name, slice.ndim,
                        kMostDimensions));
    for (int32_t d = 0; d < slice.ndim; ++d) {
      const int64_t whole = slice.global_shape[d], at = slice.offsets[d], extent = slice.shape[d];
      if (at < 0 || extent < 0 || at > whole || extent > whole - at)
        wrong(
            fmt::format("'{}' has {} elements from {} on of the {} of dimension {}", slice.name, extent, at, whole, d));
    }
    if (carries && (!slice.tensor || slice.tensor->ndim != slice.ndim))
      wrong(fmt::format("'{}' comes without its tensor, or with one of other dimensions", slice.name));
  }
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

void Instance::raise_thrown(const CallContext& context, std::string_view name) const {
  throw PluginError(
      HEXAD_INTERNAL,
      fmt::format("{}: {} at step {}: threw a C++ exception across the ABI: {}: the plugin is faulty, tell "
                  "its author",
                  label_, name, context.step, thrown_text()));
}

}  // namespace hexad::plugin
