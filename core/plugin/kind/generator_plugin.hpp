// A generator plugin's instance.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "core/plugin/kind/instance_base.hpp"

namespace hexad::plugin {

class GeneratorPlugin : public Instance {
 public:
  // Creates the engine. `config` is the `policy.generation` section with model_name, precision,
  // max_total_sequence_length, and this replica's place replica_index of replica_count added.
  GeneratorPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config);
  ~GeneratorPlugin();

  const hexad_generator_info& info() const { return info_; }

  // Thread class A: submit, poll (one poller), cancel may run at the same time from several threads.
  void submit(const CallContext& context, std::span<const hexad_request* const> requests);
  // Waits for up to timeout_ms and calls `event` for each completion, which is borrowed until `event` returns. Returns
  // how many there were.
  int64_t poll(const CallContext& context, int64_t max_events, int64_t timeout_ms,
               const std::function<void(const hexad_completion&)>& event);
  void cancel(const CallContext& context, std::span<const uint64_t> ids);

  // Refit: begin, buckets, end. commit = false leaves the old weights in force.
  void update_begin(const CallContext& context, int64_t version);
  void update_bucket(const CallContext& context, const hexad_weight_list& bucket);
  void update_end(const CallContext& context, bool commit);

  // Optional: has_layout says whether the first may be called; without the others nothing happens.
  bool has_layout() const;
  std::span<const hexad_weight_slice> weight_layout(const CallContext& context);
  void pause(const CallContext& context);
  void resume(const CallContext& context);
  void sleep(const CallContext& context, int32_t level);
  void wake(const CallContext& context);
  void flush_cache(const CallContext& context);

 private:
  const hexad_generator_vtable* vtable_;
  hexad_generator* self_ = nullptr;
  hexad_generator_info info_{};
};

}  // namespace hexad::plugin
