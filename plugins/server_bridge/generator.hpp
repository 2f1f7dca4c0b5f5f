// A bridge's face to the host: the members of hexad_generator_vtable (abi.h), each handed to the part whose it is.
#pragma once
#include <hexad/generator.hpp>

#include <memory>
#include <span>

#include "plugins/server_bridge/inbox.hpp"
#include "plugins/server_bridge/server_pool.hpp"
#include "plugins/server_bridge/settings.hpp"
#include "plugins/server_bridge/weight_update.hpp"
#include "plugins/server_bridge/work_dir.hpp"

namespace hexad::bridge {

// Threads as abi.h has them: submit, poll, release and cancel from any, at once with all others; the rest one at a
// time.
class Generator {
 public:
  Generator(const sdk::Call& call, const sdk::Config& config, Settings settings, std::unique_ptr<Dialect> dialect);

  void describe(const sdk::Call& call, hexad_generator_info& info);

  void submit(const sdk::Call&, std::span<const hexad_request* const> requests) { inbox_.submit(requests); }
  int64_t poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms) {
    return inbox_.poll(call, events, timeout_ms);
  }
  void release(std::span<const hexad_completion* const> events) { inbox_.release(events); }
  void cancel(const sdk::Call&, std::span<const uint64_t> ids) { inbox_.cancel(ids); }

  void update_begin(const sdk::Call& call, int64_t version) { update_.begin(call, version); }
  void update_bucket(const sdk::Call& call, const hexad_weight_list& bucket) { update_.add(call, bucket); }
  void update_end(const sdk::Call& call, bool commit) { update_.end(call, commit); }

  void pause(const sdk::Call&) { servers_.pause(); }
  void resume(const sdk::Call&) { servers_.resume(); }
  void sleep(const sdk::Call& call, int32_t level) { servers_.sleep(call, level); }
  void wake(const sdk::Call&) { servers_.wake(); }
  void flush_cache(const sdk::Call&) { servers_.flush_cache(); }

 private:
  // Each uses those above it.
  const Settings settings_;
  const std::unique_ptr<const Dialect> dialect_;
  WorkDir work_;
  Outbox outbox_;
  ServerPool servers_;
  WeightUpdate update_;
  Inbox inbox_;
};

}  // namespace hexad::bridge
