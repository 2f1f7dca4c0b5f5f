#include "plugins/server_bridge/inbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "plugins/server_bridge/stop_strings.hpp"

namespace hexad::bridge {

Inbox::Inbox(const Settings& settings, EventLoop& loop, Fleet& fleet, Outbox& outbox,
             std::function<bool()> weights_expected)
    : settings_(settings),
      loop_(loop),
      fleet_(fleet),
      outbox_(outbox),
      weights_expected_(std::move(weights_expected)) {}

void Inbox::submit(std::span<const hexad_request* const> from) {
  std::vector<Request> requests;
  for (const hexad_request* request : from) requests.push_back(copy_request(*request, settings_.vocabulary));
  take_in(requests);
  end_those_without_room(requests);
  loop_.post([&fleet = fleet_, requests = std::make_shared<std::vector<Request>>(std::move(requests))] {
    fleet.submit(std::move(*requests));
  });
}

void Inbox::take_in(const std::vector<Request>& requests) {
  const std::lock_guard lock(mutex_);
  std::unordered_set<uint64_t> ids;
  for (const Request& request : requests) {
    if (live_.contains(request.id) || !ids.insert(request.id).second) {
      sdk::fail(HEXAD_INVALID_ARGUMENT, "request %llu: its id is that of a running request",
                static_cast<unsigned long long>(request.id));
    }
  }
  for (const Request& request : requests) live_[request.id] = {request.stop_strings, 0, request.stream};
}

void Inbox::end_those_without_room(std::vector<Request>& requests) {
  if (settings_.max_length <= 0) return;
  std::erase_if(requests, [&](Request& request) {
    const int64_t room = settings_.max_length - static_cast<int64_t>(request.prompt.size());
    request.max_new_tokens = std::min(request.max_new_tokens, room);
    if (room > 0) return false;
    auto event = std::make_unique<Event>();
    event->error = fmt::format("a prompt of {} tokens leaves no room within the {} of a sequence",
                               request.prompt.size(), settings_.max_length);
    event->seal(request.id, HEXAD_FINISH_ERROR);
    outbox_.put_final(std::move(event));
    return true;
  });
}

// Whether the event, partial or last, is the end of its request: it is cut at the stop string then.
bool Inbox::ends_at_text(const sdk::Call& call, Event& event, Watched& watched) {
  const int64_t count = find_stop(event.tokens, watched.examined, watched.stops,
                                  [&](const int32_t* ids, int64_t n) { return call.detokenize(ids, n); });
  watched.examined = static_cast<int64_t>(event.tokens.size());
  if (count == 0) return false;
  event.seal(event.completion->id, HEXAD_FINISH_STOP, static_cast<size_t>(count));
  return true;
}

// The next event that the host is to see; null if there is none yet.
std::unique_ptr<Event> Inbox::next_event(const sdk::Call& call) {
  while (std::unique_ptr<Event> event = outbox_.take()) {
    const uint64_t id = event->completion->id;
    const bool partial = event->completion->finish == HEXAD_FINISH_NONE;
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end()) continue;  // it has ended at a stop string
    const bool judged = event->completion->finish == HEXAD_FINISH_ERROR || found->second.stops.empty();
    const bool ended = !judged && ends_at_text(call, *event, found->second);
    if (partial && ended) loop_.run([&] { fleet_.drop(id); });
    if (partial && !ended && !found->second.stream) continue;
    if (!partial || ended) live_.erase(found);
    return event;
  }
  return nullptr;
}

// Requests that nothing will answer are the host's to know of.
void Inbox::fail_if_hopeless(bool time_is_up) {
  const std::lock_guard lock(mutex_);
  if (live_.empty()) return;
  if (const std::string trouble = outbox_.trouble(); !trouble.empty()) throw sdk::Error(HEXAD_UNAVAILABLE, trouble);
  if (!time_is_up || weights_expected_()) return;
  sdk::fail(HEXAD_FAILED_PRECONDITION,
            "requests are waiting, and there are no weights: %s has none, and no update has brought any",
            settings_.model_name.c_str());
}

int64_t Inbox::poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms) {
  const auto deadline = Clock::now() + Milliseconds(timeout_ms);
  constexpr auto kSlice = Milliseconds(50);  // of waiting, between looks at `cancelled`
  if (events.empty()) return 0;
  for (;;) {
    int64_t count = 0;
    while (count < static_cast<int64_t>(events.size())) {
      std::unique_ptr<Event> event = next_event(call);
      if (!event) break;
      const std::lock_guard lock(mutex_);
      const hexad_completion* completion = events[static_cast<size_t>(count++)] = event->completion.get();
      lent_[completion] = std::move(event);
    }
    if (count > 0) return count;
    if (call.cancelled()) sdk::fail(HEXAD_CANCELLED, "poll was cancelled");
    const auto now = Clock::now();
    fail_if_hopeless(now >= deadline);
    if (now < deadline) {
      outbox_.wait_until(std::min(deadline, now + kSlice));
      continue;
    }
    call.alive();  // servers that send nothing, or are lost, have deadlines of their own (fleet/health.hpp)
    return 0;
  }
}

void Inbox::release(std::span<const hexad_completion* const> events) {
  const std::lock_guard lock(mutex_);
  for (const hexad_completion* event : events) lent_.erase(event);
}

void Inbox::cancel(std::span<const uint64_t> ids) {
  loop_.post([&fleet = fleet_, ids = std::vector<uint64_t>(ids.begin(), ids.end())] {
    for (const uint64_t id : ids) fleet.cancel(id);
  });
}

}  // namespace hexad::bridge
