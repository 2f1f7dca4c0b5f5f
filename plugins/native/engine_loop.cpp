#include "plugins/native/engine_loop.hpp"

#include <utility>

#include "plugins/native/device_scope.hpp"

namespace hexad::native {

EngineLoop::EngineLoop(std::unique_ptr<Engine> engine, Replica replica, at::Device device, Mailbox& mailbox)
    : device_(device), mailbox_(mailbox), turns_(std::move(replica), device, mailbox), engine_(std::move(engine)) {}

EngineLoop::Pass EngineLoop::run_once(const sdk::Call& call) {
  if (waiting_ != 0) return {};
  const std::lock_guard lock(mutex_);
  const std::optional<Turn> turn = turns_.next(call, engine_->digest());
  return turn ? run_turn(call, *turn) : Pass();
}

EngineLoop::Pass EngineLoop::run_turn(const sdk::Call& call, const Turn& turn) {
  for (auto& sequence : turns_.arrivals(call, turn)) engine_->add(std::move(sequence));
  for (const uint64_t id : turn.cancelled) engine_->cancel(id);
  const bool ready = engine_->ready(), has_weights = engine_->has_weights();
  const Pass pass{.ran = ready && has_weights, .lacks_weights = ready && !has_weights};
  if (pass.ran && !engine_->has_cache()) make_cache(call);
  if (pass.ran) {
    on_device(call, device_,
              [&] { engine_->step([&](const int32_t* ids, int64_t count) { return call.detokenize(ids, count); }); });
  }
  mailbox_.deliver(engine_->take_events());
  return pass;
}

void EngineLoop::make_cache(const sdk::Call& call) {
  try {
    turns_.together(call, [&] { engine_->make_cache(); });
  } catch (...) {
    engine_->drop_cache();  // on all, or the next turn would ask some alone
    throw;
  }
}

void EngineLoop::come_apart(const sdk::Call& call) {
  turns_.announce(call, engine_->digest());
  while (!turns_.stands_apart())
    if (const std::optional<Turn> turn = turns_.next(call, engine_->digest())) run_turn(call, *turn);
  turns_.rejoin();
}

void EngineLoop::exclusively(const sdk::Call& call, const std::function<void(Engine&)>& body) {
  ++waiting_;
  {
    const std::lock_guard lock(mutex_);
    --waiting_;
    come_apart(call);
    on_device(call, device_, [&] { body(*engine_); });
  }
  mailbox_.wake();
}

}  // namespace hexad::native
