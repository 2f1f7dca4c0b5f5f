#include "plugins/native/generator.hpp"

#include <algorithm>
#include <chrono>

#include "plugins/native/device_scope.hpp"
#include "plugins/native/generator_table.hpp"
#include "plugins/native/make_engine.hpp"
#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

Generator::Generator(const sdk::Call& call, const sdk::Config& config) : settings_(read_settings(call, config)) {
  on_device(call, settings_.device, [&] {
    const modeling::ModelConfig model = load_model(settings_);
    vocab_size_ = model.vocab_size;
    const Replica replica = make_replica(call, settings_.tensor_parallel_size);
    loop_.emplace(make_engine(call, settings_, model, replica), replica, settings_.device, mailbox_);
    refit_.emplace(settings_, model, *loop_);
  });
}

void Generator::describe(const sdk::Call&, hexad_generator_info& info) {
  info.caps = HEXAD_GEN_STREAMING | HEXAD_GEN_UPDATE_INFLIGHT | HEXAD_GEN_SLEEP | HEXAD_GEN_ROUTED_EXPERTS;
  info.max_sequences = settings_.max_sequences;
  info.max_model_len = settings_.max_length;
  info.kv_capacity = loop_->engine().scheduler().pool().size() * settings_.block_size;
  info.weight_form = HEXAD_FORM_FULL;
}

void Generator::submit(const sdk::Call&, std::span<const hexad_request* const> requests) {
  Mailbox::Sequences sequences;
  for (const hexad_request* request : requests) sequences.push_back(make_sequence(*request, vocab_size_));
  mailbox_.submit(std::move(sequences));
}

int64_t Generator::poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  constexpr auto kSlice = std::chrono::milliseconds(50);  // of waiting, between looks at `cancelled`
  if (events.empty()) return 0;
  for (;;) {
    if (loop_->take_called_off(call)) sdk::fail(HEXAD_CANCELLED, "poll was cancelled");
    if (const int64_t count = mailbox_.hand_out(events)) return count;
    const EngineLoop::Pass pass = loop_->run_once(call);
    const bool stuck = pass.lacks_weights && !refit_->expects_weights();
    if (loop_->called_off()) continue;
    if (const int64_t count = mailbox_.hand_out(events)) return count;
    const auto now = Clock::now();
    if (now >= deadline && stuck) {
      sdk::fail(HEXAD_FAILED_PRECONDITION,
                "requests are waiting, and there are no weights: %s %s, and no update has brought any",
                settings_.model_name.c_str(), settings_.weights_follow ? "was not to be read" : "has none");
    }
    if (pass.ran) tell_that_it_runs(call);
    if (now >= deadline) return 0;
    if (pass.ran || loop_->awaits_a_turn()) continue;  // what it waits for is the next turn
    mailbox_.wait_until(std::min(deadline, now + kSlice));
  }
}

// Long responses have no event for long.
void Generator::tell_that_it_runs(const sdk::Call& call) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_told_ < std::chrono::seconds(1)) return;
  last_told_ = now;
  call.alive();
}

void Generator::release(std::span<const hexad_completion* const> events) { mailbox_.release(events); }

void Generator::cancel(const sdk::Call&, std::span<const uint64_t> ids) { mailbox_.cancel(ids); }

void Generator::pause(const sdk::Call& call) {
  loop_->exclusively(call, [](Engine& engine) { engine.pause(); });
}

void Generator::resume(const sdk::Call& call) {
  loop_->exclusively(call, [](Engine& engine) { engine.resume(); });
}

void Generator::sleep(const sdk::Call& call, int32_t level) {
  if (level != 1 && level != 2) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "sleep: got level %d, wanted 1 (free the KV cache) or 2 (free the weights too)",
              level);
  }
  loop_->exclusively(call, [&](Engine& engine) { engine.sleep(level == 2); });
}

void Generator::wake(const sdk::Call& call) {
  loop_->exclusively(call, [](Engine& engine) { engine.wake(); });
}

void Generator::flush_cache(const sdk::Call& call) {
  loop_->exclusively(call, [](Engine& engine) { engine.flush_prompts(); });
}

const hexad_generator_vtable kGeneratorTable = sdk::GeneratorThunks<Generator>::table;

}  // namespace hexad::native
