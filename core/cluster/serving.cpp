#include "core/cluster/serving.hpp"

#include <chrono>

#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

constexpr int64_t kMostEvents = 256;
constexpr int64_t kSliceMs = 20;  // the thread looks up this often
constexpr auto kMostToEnd = std::chrono::seconds(2);

// What is wrong with the end of a request; "" if nothing is. The rest GeneratorPlugin has looked at.
std::string wrong_completion(const hexad_completion& event, int64_t max_new_tokens, int64_t vocabulary) {
  if (event.finish == HEXAD_FINISH_ERROR) return "";
  if (event.count > max_new_tokens)
    return fmt::format("it has {} tokens, and {} were allowed", event.count, max_new_tokens);
  if (event.count == 0 && event.finish != HEXAD_FINISH_ABORT)
    return "it has no token: the one that ends a response is a part of it";
  for (int64_t i = 0; i < event.count; ++i)
    if (vocabulary > 0 && event.tokens[i] >= vocabulary)
      return fmt::format("its token {} is {}, and the model has {}", i, event.tokens[i], vocabulary);
  return "";
}

}  // namespace

Serving::~Serving() { stop(); }

void Serving::submit(WorkerState& state, const protocol::Prompts& prompts, For whom) {
  plugin::GeneratorPlugin& generator = state.need_generator(whom == For::command ? "generate" : "submit");
  const auto requests = make_requests(prompts);
  const int64_t served = whom == For::command ? 0 : prompts.prompts.size();
  std::unique_lock lock(mutex_);
  plugin::CallContext context = state.context();
  if (whom != For::command) {
    context.metric = [this](const plugin::Metric& metric) {
      const std::lock_guard inner(mutex_);
      metrics_.add(metric.name, metric.value, metric.weight, static_cast<plugin::ReduceAs>(metric.reduce));
    };
    context.cancelled = nullptr;  // which is a command's, and ends no request of the run
    context_ = heard(context);
  }
  vocabulary_ = state.vocabulary;
  if (running_.empty()) last_life_ = Clock::now();
  // Known before they are submitted: the thread may meet their ends at once.
  for (const hexad_request& request : requests->requests)
    running_[request.id] = {request.prompt_size, request.max_new_tokens, whom};
  lock.unlock();
  try {
    generator.submit(context, requests->pointers);
  } catch (...) {
    lock.lock();
    for (const hexad_request& request : requests->requests) running_.erase(request.id);
    throw;
  }
  lock.lock();
  served_ += served;
  generator_ = &generator;
  if (served > 0 && !thread_.joinable()) thread_ = std::thread([this, &generator] { run(generator); });
  changed_.notify_all();
}

void Serving::take(const std::string& label, int64_t step, const hexad_completion& event) {
  last_life_ = Clock::now();
  if (event.finish == HEXAD_FINISH_NONE) return;
  const auto refuse = [&](const char* rule, const std::string& what) {
    throw Error(ErrorKind::plugin,
                plugin::broken_rule(label, "poll", step, rule,
                                    fmt::format("the completion of request {}: {}", event.id, what)));
  };
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(event.id);
  if (found == running_.end()) refuse("G2", "it was never submitted, or has ended before");
  const Running request = found->second;
  if (request.whom == For::given_up) return void(running_.erase(found));
  if (const std::string wrong = wrong_completion(event, request.max_new_tokens, vocabulary_); !wrong.empty())
    refuse("G3", wrong);
  Finished finished{event.id, {}, data::Batch::of_lengths(std::vector<int64_t>{request.prompt_tokens}), {}};
  if (event.finish == HEXAD_FINISH_ERROR) {
    finished.error = event.error ? event.error : "failed without a reason";
  } else if (event.finish == HEXAD_FINISH_ABORT) {  // those that were cancelled are nobody's any more
    finished.error = "ended as aborted, and nobody has cancelled it";
  } else if (request.whom != For::nobody) {
    finished.completion = completion_of(event);
    finished.columns = columns_of(fmt::format("{}: poll at step {}", label, step), event, request.prompt_tokens);
  }
  running_.erase(found);
  served_ -= request.whom != For::command;
  if (request.whom == For::run) finished_.push_back(std::move(finished));
  if (request.whom == For::command) awaited_.push_back(std::move(finished));
}

void Serving::poll(plugin::GeneratorPlugin& generator, const plugin::CallContext& context, int64_t timeout_ms) {
  const std::lock_guard turn(poll_mutex_);
  generator.poll(context, kMostEvents, timeout_ms,
                 [&](const hexad_completion& event) { take(generator.plugin().label(), context.step, event); });
}

void Serving::run(plugin::GeneratorPlugin& generator) {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (!polls()) {
      changed_.wait(lock);
      continue;
    }
    const plugin::CallContext context = *context_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      poll(generator, context, kSliceMs);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) failure_ = failure;
    changed_.notify_all();
  }
}

void Serving::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

std::vector<Serving::Finished> Serving::wait(WorkerState& state, int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  if (!polls() && !failure_ && awaited_.empty()) {
    lock.unlock();
    poll(state.need_generator("generate"), heard(state.context()), timeout_ms);
    lock.lock();
  } else {
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                      [&] { return !awaited_.empty() || failure_ || !polls(); });
  }
  rethrow();
  if (awaited_.empty()) require_life(state);
  return std::exchange(awaited_, {});
}

plugin::CallContext Serving::heard(plugin::CallContext context) {
  context.alive = [this] { last_life_ = Clock::now(); };
  return context;
}

// With mutex_ locked.
void Serving::require_life(WorkerState& state) {
  const std::chrono::duration<double> silent = Clock::now() - last_life_.load();
  if (running_.empty() || failure_ || silent.count() <= state.timeout_s) return;
  const plugin::GeneratorPlugin& generator = state.need_generator("generate");
  fail(ErrorKind::plugin,
       "{}: poll at step {}: {} requests are under way, and it has brought nothing for {:.0f} s "
       "(cluster.worker_timeout_s, rule G1 of the ABI): it hangs, or a response takes that long, and then the key has "
       "to be raised",
       generator.plugin().label(), state.step, running_.size(), silent.count());
}

void Serving::forget() {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [](const auto& entry) { return entry.second.whom == For::command; });
  awaited_.clear();
}

void Serving::give_up(WorkerState& state) noexcept {
  std::vector<uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, request] : running_)
      if (request.whom == For::command) request.whom = For::given_up, ids.push_back(id);
  }
  try {
    state.need_generator("generate").cancel(state.context(), ids);
  } catch (const Error&) {  // what ended the command says more
  }
}

bool Serving::serves() {
  const std::lock_guard lock(mutex_);
  return served_ > 0 || !finished_.empty() || failure_;
}

void Serving::hand_out(WorkerState& state) {
  std::unique_lock lock(mutex_);
  rethrow();
  if (finished_.empty()) return require_life(state);
  const std::vector<Finished> finished = std::exchange(finished_, {});
  protocol::Completions event;
  event.metrics = std::exchange(metrics_, {});
  lock.unlock();
  std::vector<Completion> completions;
  for (const Finished& request : finished) {
    event.ids.push_back(request.id);
    event.errors.push_back(request.error);
    event.columns.push_back(request.columns);
    completions.push_back(request.completion);
  }
  event.completions = to_batch(completions);
  state.link.event(event);
}

void Serving::stop() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  std::vector<uint64_t> ids;
  for (const auto& [id, request] : running_) ids.push_back(id);
  if (polls()) {
    const plugin::CallContext context = *context_;
    lock.unlock();
    try {
      generator_->cancel(context, ids);
    } catch (const Error&) {  // it goes anyway
    }
    lock.lock();
    changed_.wait_for(lock, kMostToEnd, [&] { return !polls(); });
  }
  closing_ = true;
  changed_.notify_all();
  lock.unlock();
  thread_.join();
}

}  // namespace hexad::cluster
