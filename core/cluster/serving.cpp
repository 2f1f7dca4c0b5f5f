#include "core/cluster/serving.hpp"

#include <chrono>

#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

constexpr int64_t kMostEvents = 256;
constexpr int64_t kSliceMs = 20;  // the thread looks up this often
constexpr auto kMostToEnd = std::chrono::seconds(2);

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
    context_ = context;
  }
  // Known before they are submitted: the thread may meet their ends at once.
  for (size_t i = 0; i < requests->requests.size(); ++i)
    running_[requests->requests[i].id] = {prompts.prompts.length(static_cast<int64_t>(i)), whom};
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

void Serving::take(const std::string& label, const hexad_completion& event) {
  if (event.finish == HEXAD_FINISH_NONE) return;
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(event.id);
  if (found == running_.end())
    fail(ErrorKind::plugin, "{}: a completion for request {}, which was never submitted", label, event.id);
  const Running request = found->second;
  Finished finished{event.id, {}, data::Batch::of_lengths(std::vector<int64_t>{request.prompt_tokens}), {}};
  if (event.finish == HEXAD_FINISH_ERROR) {
    finished.error = event.error ? event.error : "failed without a reason";
  } else if (request.whom != For::nobody) {
    finished.completion = completion_of(event);
    finished.columns = columns_of(label, event, request.prompt_tokens);
  }
  running_.erase(found);
  served_ -= request.whom != For::command;
  if (request.whom == For::run) finished_.push_back(std::move(finished));
  if (request.whom == For::command) awaited_.push_back(std::move(finished));
}

void Serving::poll(plugin::GeneratorPlugin& generator, const plugin::CallContext& context, int64_t timeout_ms) {
  const std::lock_guard turn(poll_mutex_);
  generator.poll(context, kMostEvents, timeout_ms,
                 [&](const hexad_completion& event) { take(generator.plugin().label(), event); });
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
    poll(state.need_generator("generate"), state.context(), timeout_ms);
    lock.lock();
  } else {
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                      [&] { return !awaited_.empty() || failure_ || !polls(); });
  }
  rethrow();
  return std::exchange(awaited_, {});
}

void Serving::forget() {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [](const auto& entry) { return entry.second.whom == For::command; });
  awaited_.clear();
}

bool Serving::serves() {
  const std::lock_guard lock(mutex_);
  return served_ > 0 || !finished_.empty() || failure_;
}

void Serving::hand_out(WorkerState& state) {
  std::unique_lock lock(mutex_);
  rethrow();
  if (finished_.empty()) return;
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
