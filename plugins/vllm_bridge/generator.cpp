#include "plugins/vllm_bridge/generator.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "plugins/vllm_bridge/stop_strings.hpp"

namespace hexad::vllm {
namespace {

namespace fs = std::filesystem;

Log log_to(const hexad_host* host) {
  return [host](int32_t level, const std::string& text) {
    if (host->log_enabled(level)) host->log(nullptr, level, text.data(), text.size());
  };
}

// A connection a running request, and more than shells allow by default.
void raise_descriptor_limit(const Settings& settings, const Log& log) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // else connections that are refused say so
  constexpr rlim_t kOthers = 128;      // files
  const auto servers = settings.urls.empty() ? static_cast<rlim_t>(settings.spawn.servers) : settings.urls.size();
  const rlim_t wanted = servers * static_cast<rlim_t>(settings.max_running) + kOthers;
  if (limit.rlim_max >= wanted) return;
  log(HEXAD_LOG_WARN,
      fmt::format(
          "this process may have {} open files, and {} vLLM servers with {} requests each may need {}: requests "
          "beyond wait for others to end. Raise the limit (ulimit -Hn), or lower "
          "policy.generation.vllm_cfg.max_running_requests",
          limit.rlim_max, servers, settings.max_running, wanted));
}

int rank_of(const sdk::Config& config) { return static_cast<int>(config.get<int64_t>("replica_index", 0)); }

std::string log_dir(const Settings& settings, const WorkDir& work) {
  const std::string& dir = settings.spawn.log_dir;
  if (dir.empty()) return work.path().string();
  fs::create_directories(dir);
  return fs::absolute(dir).string();
}

}  // namespace

WorkDir::WorkDir(const std::string& parent) {
  const fs::path base = parent.empty() ? fs::temp_directory_path() : fs::absolute(parent);
  fs::create_directories(base);
  std::string pattern = (base / "hexad-vllm-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "cannot make a folder for weights and logs in %s: wanted a folder that can be "
              "written, named by policy.generation.vllm_cfg.refit_dir",
              base.c_str());
  }
  path_ = pattern;
}

WorkDir::~WorkDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Generator::Generator(const sdk::Call& call, const sdk::Config& config)
    : log_(log_to(call.host())),
      settings_(read_settings(call, config)),
      work_(settings_.refit_dir),
      fleet_(loop_, settings_, outbox_, log_),
      control_(loop_, fleet_),
      nursery_(loop_, fleet_, settings_, log_dir(settings_, work_), work_.path().string(), rank_of(config), log_),
      spawns_(settings_.urls.empty()),
      first_starts_end_(Clock::now() + std::chrono::ceil<Milliseconds>(
                                           std::min(settings_.deadlines.startup, settings_.deadlines.control))) {
  raise_descriptor_limit(settings_, log_);
  if (!spawns_) {
    loop_.run([&] {
      for (size_t i = 0; i < settings_.urls.size(); ++i)
        fleet_.admit(static_cast<int>(i), settings_.urls[i], settings_.api_key);
    });
    return;
  }
  has_weights_ = has_weights(settings_.model_name);
  if (has_weights_)
    loop_.run([&] { nursery_.start(settings_.model_name); });
  else
    log_(HEXAD_LOG_INFO, "the model has no weights: its vLLM servers start with those of the first update");
}

void Generator::describe(const sdk::Call&, hexad_generator_info& info) {
  const int64_t servers = spawns_ ? settings_.spawn.servers : static_cast<int64_t>(settings_.urls.size());
  info.caps = HEXAD_GEN_STREAMING | HEXAD_GEN_UPDATE_INFLIGHT | HEXAD_GEN_SLEEP;
  info.max_sequences = servers * settings_.max_running;
  info.max_model_len = settings_.max_length;
  info.kv_capacity = 0;
  info.weight_form = HEXAD_FORM_FULL;
}

void Generator::submit(const sdk::Call&, std::span<const hexad_request* const> from) {
  std::vector<Request> requests;
  for (const hexad_request* request : from) requests.push_back(copy_request(*request));
  {
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
  if (settings_.max_length > 0) {
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
  loop_.post([this, requests = std::make_shared<std::vector<Request>>(std::move(requests))] {
    fleet_.submit(std::move(*requests));
  });
}

// Whether the event, partial or last, is the end of its request: it is cut at the stop string then.
bool Generator::ends_at_text(const sdk::Call& call, Event& event, Watched& watched) {
  const int64_t count = find_stop(event.tokens, watched.examined, watched.stops,
                                  [&](const int32_t* ids, int64_t n) { return call.detokenize(ids, n); });
  watched.examined = static_cast<int64_t>(event.tokens.size());
  if (count == 0) return false;
  event.seal(event.completion.id, HEXAD_FINISH_STOP, static_cast<size_t>(count));
  return true;
}

// The next event that the host is to see; null if there is none yet.
std::unique_ptr<Event> Generator::next_event(const sdk::Call& call) {
  while (std::unique_ptr<Event> event = outbox_.take()) {
    const uint64_t id = event->completion.id;
    const bool partial = event->completion.finish == HEXAD_FINISH_NONE;
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end()) continue;  // it has ended at a stop string
    const bool judged = event->completion.finish == HEXAD_FINISH_ERROR || found->second.stops.empty();
    const bool ended = !judged && ends_at_text(call, *event, found->second);
    if (partial && ended) loop_.run([&] { fleet_.drop(id); });
    if (partial && !ended && !found->second.stream) continue;
    if (!partial || ended) live_.erase(found);
    return event;
  }
  return nullptr;
}

// Requests that nothing will answer are the host's to know of.
void Generator::fail_if_hopeless(bool time_is_up) {
  const std::lock_guard lock(mutex_);
  if (live_.empty()) return;
  if (const std::string trouble = outbox_.trouble(); !trouble.empty()) throw sdk::Error(HEXAD_UNAVAILABLE, trouble);
  if (!time_is_up || has_weights_ || updating_) return;
  sdk::fail(HEXAD_FAILED_PRECONDITION,
            "requests are waiting, and there are no weights: %s has none, and no update has brought any",
            settings_.model_name.c_str());
}

int64_t Generator::poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms) {
  const auto deadline = Clock::now() + Milliseconds(timeout_ms);
  constexpr auto kSlice = Milliseconds(50);  // of waiting, between looks at `cancelled`
  if (events.empty()) return 0;
  for (;;) {
    int64_t count = 0;
    while (count < static_cast<int64_t>(events.size())) {
      std::unique_ptr<Event> event = next_event(call);
      if (!event) break;
      const std::lock_guard lock(mutex_);
      const hexad_completion* completion = events[static_cast<size_t>(count++)] = &event->completion;
      lent_[completion] = std::move(event);
    }
    if (count > 0) return count;
    if (call.cancelled()) sdk::fail(HEXAD_CANCELLED, "poll was cancelled");
    const auto now = Clock::now();
    fail_if_hopeless(now >= deadline);
    if (now >= deadline) return 0;
    outbox_.wait_until(std::min(deadline, now + kSlice));
  }
}

void Generator::release(std::span<const hexad_completion* const> events) {
  const std::lock_guard lock(mutex_);
  for (const hexad_completion* event : events) lent_.erase(event);
}

void Generator::cancel(const sdk::Call&, std::span<const uint64_t> ids) {
  loop_.post([this, ids = std::vector<uint64_t>(ids.begin(), ids.end())] {
    for (const uint64_t id : ids) fleet_.cancel(id);
  });
}

}  // namespace hexad::vllm
