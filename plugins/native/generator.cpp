#include "plugins/native/generator.hpp"

#include <fmt/format.h>

#include <chrono>

#include "modeling/weight/safetensors_reader.hpp"
#include "plugins/native/device_scope.hpp"
#include "plugins/native/generator_table.hpp"
#include "plugins/native/memory.hpp"
#include "plugins/native/parallel/make_replica.hpp"

namespace hexad::native {

using Clock = std::chrono::steady_clock;

namespace {

// The cache has keys and values of one width.
void require_one_width(const modeling::ModelConfig& model, const std::string& dir) {
  if (!model.mla) return;
  sdk::fail(HEXAD_UNIMPLEMENTED,
            "%s: model_type '%s' has multi-head latent attention, which the native generator cannot run yet; wanted "
            "another model, or another generator (policy.generation.backend)",
            dir.c_str(), model.family.c_str());
}

}  // namespace

Generator::Generator(const sdk::Call& call, const sdk::Config& config) : settings_(read_settings(call, config)) {
  on_device(call, settings_.device, [&] { create(call); });
}

void Generator::create(const sdk::Call& call) {
  model_ = modeling::load_model_config(settings_.model_name);
  require_one_width(model_, settings_.model_name);
  if (settings_.max_length == 0) settings_.max_length = model_.max_position_embeddings;
  const Replica& replica = lockstep_.emplace(make_replica(call, settings_.tensor_parallel_size)).replica();
  agreement_.emplace(replica, replica.aside());
  in_turn_.emplace(replica, replica.in_order());
  const modeling::ModelConfig local = local_config(model_, replica.shard());
  int64_t blocks = count_blocks(settings_, local);
  if (!replica.alone()) blocks = replica.smallest(blocks);
  const ExecutorOptions options{.dtype = settings_.dtype,
                                .device = settings_.device,
                                .deterministic = settings_.deterministic,
                                .max_length = settings_.max_length,
                                .block_size = settings_.block_size,
                                .max_sequences = settings_.max_sequences,
                                .max_tokens = settings_.max_tokens,
                                .fp8 = settings_.fp8,
                                .fp8_cache = settings_.fp8_cache,
                                .batch_invariant = settings_.batch_invariant,
                                .replica = replica};
  std::unique_ptr<Executor> executor = make_executor(model_, options);
  ever_had_weights_ = !settings_.weights_follow && modeling::has_weights(settings_.model_name);
  if (ever_had_weights_) {
    executor->set_weights(load_weights(settings_.model_name, model_, settings_.dtype, settings_.device,
                                       executor->places(), replica.shard()));
  }
  const SchedulerOptions schedule{.block_size = settings_.block_size,
                                  .num_blocks = blocks,
                                  .max_sequences = settings_.max_sequences,
                                  .max_tokens = settings_.max_tokens,
                                  .chunked_prefill = settings_.chunked_prefill,
                                  .share_prompts = settings_.share_prompts};
  KvCache cache(local, settings_.block_size, blocks, settings_.cache_dtype(), settings_.device, settings_.keep_routes,
                executor->key_layout());
  engine_.emplace(EngineOptions{schedule, settings_.max_length, model_.eos_token_ids,
                                replica.alone() ? std::string() : replica.name()},
                  std::move(executor), std::move(cache), ever_had_weights_);
  if (blocks * settings_.block_size < settings_.max_length) {
    call.log(HEXAD_LOG_WARN,
             fmt::format("the KV cache holds {} tokens, less than one sequence of max_total_sequence_length {}",
                         blocks * settings_.block_size, settings_.max_length));
  }
}

void Generator::describe(const sdk::Call&, hexad_generator_info& info) {
  info.caps = HEXAD_GEN_STREAMING | HEXAD_GEN_UPDATE_INFLIGHT | HEXAD_GEN_SLEEP | HEXAD_GEN_ROUTED_EXPERTS;
  info.max_sequences = settings_.max_sequences;
  info.max_model_len = settings_.max_length;
  info.kv_capacity = engine_->scheduler().pool().size() * settings_.block_size;
  info.weight_form = HEXAD_FORM_FULL;
}

std::unique_ptr<Sequence> Generator::make_sequence(const hexad_request& from) const {
  const auto refuse = [&](const std::string& reason) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "request %llu: %s", static_cast<unsigned long long>(from.id), reason.c_str());
  };
  auto sequence = std::make_unique<Sequence>();
  Request& to = sequence->request;
  to.id = from.id, to.group = from.group, to.seed = from.seed;
  if (from.prompt_size < 1) refuse("the prompt is empty");
  to.prompt.assign(from.prompt, from.prompt + from.prompt_size);
  for (const int32_t token : to.prompt) {
    if (token < 0 || token >= model_.vocab_size) {
      refuse(fmt::format("token {} of the prompt is outside of the vocabulary of {}", token, model_.vocab_size));
    }
  }
  if (from.max_new_tokens < 1) refuse(fmt::format("max_new_tokens must be at least 1, got {}", from.max_new_tokens));
  to.max_new_tokens = from.max_new_tokens;
  to.sampling = {.temperature = from.temperature, .top_p = from.top_p, .min_p = from.min_p, .top_k = from.top_k};
  if (from.flags & HEXAD_REQUEST_GREEDY) to.sampling.temperature = 0;
  try {
    to.sampling = normalized(to.sampling);
  } catch (const sdk::Error& error) {
    refuse(error.what());
  }
  if (from.num_stop_token_ids < 0 || from.num_stop_strings < 0) refuse("a negative number of stop tokens or strings");
  to.stop_token_ids.assign(from.stop_token_ids, from.stop_token_ids + from.num_stop_token_ids);
  to.stop_strings.assign(from.stop_strings, from.stop_strings + from.num_stop_strings);
  for (const std::string& text : to.stop_strings) {
    if (text.empty()) refuse("a stop string is empty");
  }
  to.ignore_eos = (from.flags & HEXAD_REQUEST_IGNORE_EOS) != 0;
  to.stream = (from.flags & HEXAD_REQUEST_STREAM) != 0;
  sequence->tokens = to.prompt;
  return sequence;
}

void Generator::submit(const sdk::Call&, std::span<const hexad_request* const> requests) {
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (const hexad_request* request : requests) sequences.push_back(make_sequence(*request));
  const std::lock_guard lock(state_mutex_);
  std::unordered_set<uint64_t> ids;
  for (const auto& sequence : sequences) {
    const uint64_t id = sequence->request.id;
    if (live_.contains(id) || !ids.insert(id).second) {
      sdk::fail(HEXAD_INVALID_ARGUMENT, "request %llu: its id is that of a running request",
                static_cast<unsigned long long>(id));
    }
  }
  live_.merge(ids);
  std::move(sequences.begin(), sequences.end(), std::back_inserter(inbox_));
  signal();
}

void Generator::signal() {
  dirty_ = true;
  changed_.notify_all();
}

int64_t Generator::hand_out(std::span<const hexad_completion*> events) {
  const std::lock_guard lock(state_mutex_);
  int64_t count = 0;
  while (!ready_.empty() && count < static_cast<int64_t>(events.size())) {
    std::unique_ptr<Event> event = std::move(ready_.front());
    ready_.pop_front();
    const hexad_completion* completion = &event->completion;
    events[count++] = completion;
    lent_[completion] = std::move(event);
  }
  return count;
}

// True if a pass was run.
bool Generator::run_once(const sdk::Call& call) {
  const std::lock_guard engine_lock(engine_mutex_);
  const std::optional<Turn> turn = next_turn(call);
  return turn && run_turn(call, *turn);
}

bool Generator::run_turn(const sdk::Call& call, const Turn& turn) {
  add_arrivals(call, turn.arrived);
  for (const uint64_t id : turn.cancelled) engine_->cancel(id);
  const bool ready = !paused_ && engine_->awake() && !engine_->idle(), run = ready && engine_->has_weights();
  stuck_ = ready && !ever_had_weights_ && !updating_;
  if (run && !engine_->has_cache()) make_cache(call);
  if (run) {
    on_device(call, settings_.device,
              [&] { engine_->step([&](const int32_t* ids, int64_t count) { return call.detokenize(ids, count); }); });
  }
  const std::lock_guard lock(state_mutex_);
  for (auto& event : engine_->take_events()) {
    if (event->completion.finish != HEXAD_FINISH_NONE) {
      live_.erase(event->completion.id);
      std::erase(cancelled_, event->completion.id);  // its number may be given out again
    }
    ready_.push_back(std::move(event));
  }
  return run;
}

int64_t Generator::poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  constexpr auto kSlice = std::chrono::milliseconds(50);  // of waiting, between looks at `cancelled`
  if (events.empty()) return 0;
  for (;;) {
    if (is_called_off(call)) sdk::fail(HEXAD_CANCELLED, "poll was cancelled");
    if (const int64_t count = hand_out(events)) return count;
    stuck_ = false;
    const bool ran = waiting_for_engine_ == 0 && run_once(call);
    if (called_off_) continue;
    if (const int64_t count = hand_out(events)) return count;
    const auto now = Clock::now();
    if (now >= deadline && stuck_) {
      sdk::fail(HEXAD_FAILED_PRECONDITION,
                "requests are waiting, and there are no weights: %s %s, and no update has brought any",
                settings_.model_name.c_str(), settings_.weights_follow ? "was not to be read" : "has none");
    }
    if (now >= deadline) return 0;
    if (ran || (lockstep_->follows() && !apart_)) continue;  // what it waits for is the next turn
    std::unique_lock lock(state_mutex_);
    changed_.wait_until(lock, std::min(deadline, now + kSlice), [&] { return dirty_; });
  }
}

void Generator::release(std::span<const hexad_completion* const> events) {
  const std::lock_guard lock(state_mutex_);
  for (const hexad_completion* event : events) lent_.erase(event);
}

void Generator::cancel(const sdk::Call&, std::span<const uint64_t> ids) {
  const std::lock_guard lock(state_mutex_);
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(cancelled_), [&](uint64_t id) { return live_.contains(id); });
  signal();
}

const hexad_generator_vtable kGeneratorTable = sdk::GeneratorThunks<Generator>::table;

}  // namespace hexad::native
