#include "core/plugin/kind/generator_plugin.hpp"

#include "core/plugin/kind/poll_rules.hpp"

namespace hexad::plugin {

GeneratorPlugin::GeneratorPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config)
    : Instance(plugin, Kind::generator, std::move(config)), vtable_(plugin.desc->generator) {
  create_instance(context, vtable_, self_);
  try {
    require_all_keys_read();
    info_.struct_size = HEXAD_STRUCT_SIZE(hexad_generator_info, weight_form);
    invoke(context, "describe", [&](hexad_call* call) { return vtable_->describe(self_, call, &info_); });
    if (info_.max_sequences < 0 || info_.max_model_len < 0 || info_.kv_capacity < 0)
      refuse(context, "describe", "G5",
             fmt::format("max_sequences is {}, max_model_len {}, kv_capacity {}; none is negative", info_.max_sequences,
                         info_.max_model_len, info_.kv_capacity));
    if (info_.weight_form != HEXAD_FORM_FULL && info_.weight_form != HEXAD_FORM_SHARD)
      refuse(context, "describe", "G5",
             fmt::format("weight_form is {}, wanted HEXAD_FORM_FULL or HEXAD_FORM_SHARD", info_.weight_form));
  } catch (...) {
    clean_up("destroy", [&] { vtable_->destroy(self_); });
    throw;
  }
}

GeneratorPlugin::~GeneratorPlugin() {
  clean_up("destroy", [&] { vtable_->destroy(self_); });
}

void GeneratorPlugin::submit(const CallContext& context, std::span<const hexad_request* const> requests) {
  const auto count = static_cast<int64_t>(requests.size());
  invoke(context, "submit", [&](hexad_call* call) { return vtable_->submit(self_, call, requests.data(), count); });
}

int64_t GeneratorPlugin::poll(const CallContext& context, int64_t max_events, int64_t timeout_ms,
                              const std::function<void(const hexad_completion&)>& event) {
  std::vector<const hexad_completion*> events(static_cast<size_t>(max_events));
  int64_t count = 0;
  invoke(context, "poll",
         [&](hexad_call* call) { return vtable_->poll(self_, call, events.data(), max_events, timeout_ms, &count); });
  if (const auto broken = broken_rule_of_poll(events, count)) refuse(context, "poll", broken->rule, broken->what);
  const auto release = [&](void*) { clean_up("release", [&] { vtable_->release(self_, events.data(), count); }); };
  const std::unique_ptr<void, decltype(release)> guard(self_, release);
  for (int64_t i = 0; i < count; ++i) event(*events[static_cast<size_t>(i)]);
  return count;
}

void GeneratorPlugin::cancel(const CallContext& context, std::span<const uint64_t> ids) {
  const auto count = static_cast<int64_t>(ids.size());
  invoke(context, "cancel", [&](hexad_call* call) { return vtable_->cancel(self_, call, ids.data(), count); });
}

void GeneratorPlugin::update_begin(const CallContext& context, int64_t version) {
  invoke(context, "update_begin", [&](hexad_call* call) { return vtable_->update_begin(self_, call, version); });
}

void GeneratorPlugin::update_bucket(const CallContext& context, const hexad_weight_list& bucket) {
  invoke(context, "update_bucket", [&](hexad_call* call) { return vtable_->update_bucket(self_, call, &bucket); });
}

void GeneratorPlugin::update_end(const CallContext& context, bool commit) {
  invoke(context, "update_end", [&](hexad_call* call) { return vtable_->update_end(self_, call, commit); });
}

bool GeneratorPlugin::has_layout() const { return HEXAD_HAS(vtable_, weight_layout) && vtable_->weight_layout; }

std::span<const hexad_weight_slice> GeneratorPlugin::weight_layout(const CallContext& context) {
  require_function(context, "weight_layout", has_layout());
  hexad_weight_list list{};
  list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  invoke(context, "weight_layout", [&](hexad_call* call) { return vtable_->weight_layout(self_, call, &list); });
  require_slices(context, "weight_layout", list);
  return {list.slices, static_cast<size_t>(list.count)};
}

void GeneratorPlugin::pause(const CallContext& context) {
  if (!HEXAD_HAS(vtable_, pause) || !vtable_->pause) return;
  invoke(context, "pause", [&](hexad_call* call) { return vtable_->pause(self_, call); });
}

void GeneratorPlugin::resume(const CallContext& context) {
  if (!HEXAD_HAS(vtable_, resume) || !vtable_->resume) return;
  invoke(context, "resume", [&](hexad_call* call) { return vtable_->resume(self_, call); });
}

void GeneratorPlugin::sleep(const CallContext& context, int32_t level) {
  if (!HEXAD_HAS(vtable_, sleep) || !vtable_->sleep) return;
  invoke(context, "sleep", [&](hexad_call* call) { return vtable_->sleep(self_, call, level); });
}

void GeneratorPlugin::wake(const CallContext& context) {
  if (!HEXAD_HAS(vtable_, wake) || !vtable_->wake) return;
  invoke(context, "wake", [&](hexad_call* call) { return vtable_->wake(self_, call); });
}

void GeneratorPlugin::flush_cache(const CallContext& context) {
  if (!HEXAD_HAS(vtable_, flush_cache) || !vtable_->flush_cache) return;
  invoke(context, "flush_cache", [&](hexad_call* call) { return vtable_->flush_cache(self_, call); });
}

}  // namespace hexad::plugin
