#include "plugins/server_bridge/fleet/fleet.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lib/http/client/error_text.hpp"

namespace hexad::bridge {
namespace {

constexpr size_t kMostAnswer = size_t{16} << 20;  // of one that is no stream

std::string random_name() {
  uint64_t bits = 0;
  (void)!::getrandom(&bits, sizeof bits, 0);
  return fmt::format("hexad-{:012x}", bits >> 16);
}

}  // namespace

Fleet::Fleet(EventLoop& loop, const Dialect& dialect, const Settings& settings, Outbox& outbox, Log log)
    : loop_(loop),
      dialect_(dialect),
      names_(dialect.names()),
      settings_(settings),
      outbox_(outbox),
      log_(std::move(log)),
      transfers_(loop),
      run_name_(random_name()) {
  if (dialect_.lacks()) weights_dir_.reset();
  loop_.run([this] { look_around(); });
}

Fleet::~Fleet() = default;

void Fleet::submit(std::vector<Request> requests) {
  for (Request& request : requests) {
    const uint64_t id = request.id;
    journal_[id] = std::make_unique<Entry>(std::move(request), settings_.eos_token_ids,
                                           settings_.routes ? &*settings_.routes : nullptr);
    waiting_.push_back(id);
  }
  dispatch();
}

void Fleet::release() {
  if (--held_ > 0) return;
  released_ = Clock::now();
  for (const auto& server : servers_) server->last_progress = released_;
  dispatch();
}

void Fleet::set_version(int64_t version, std::optional<std::string> dir) {
  version_ = version;
  offer(version);
  weights_dir_ = std::move(dir);
  group_server_.clear();  // the prompts in the caches are of old weights
  for (const auto& server : servers_) {
    if (server->up() && server->version != version_) catch_up(*server);  // it came up while the others loaded
    if (server->waits_for_weights()) check_weights(*server);
  }
}

void Fleet::holds(int index, int64_t incarnation, int64_t version) {
  Server& server = *servers_[static_cast<size_t>(index)];
  if ((server.up() || server.waits_for_weights()) && server.incarnation == incarnation) server.version = version;
}

bool Fleet::any_up() const {
  return std::any_of(servers_.begin(), servers_.end(), [](const auto& server) { return server->up(); });
}

// The group's own server as long as it is not much busier than the idlest, else the idlest. Null: none has room.
Server* Fleet::choose(const Entry& entry) {
  Server* idlest = nullptr;
  const auto has_room = [&](const Server& server) {
    return server.up() && server.version == version_ && Clock::now() >= server.rests_until &&
           static_cast<int64_t>(server.running.size()) < settings_.max_running;
  };
  for (const auto& server : servers_) {
    if (!has_room(*server)) continue;
    const bool worse = idlest && (server->index == entry.avoid || server->load >= idlest->load);
    if (!idlest || !worse || idlest->index == entry.avoid) idlest = server.get();
  }
  const auto known = group_server_.find(entry.request.group);
  if (!idlest || known == group_server_.end()) return idlest;
  Server& own = *servers_[static_cast<size_t>(known->second)];
  const int64_t cost = entry.left() + static_cast<int64_t>(entry.request.prompt.size());
  constexpr int64_t kGroup = 16;  // requests that a server may be ahead
  return has_room(own) && own.index != entry.avoid && own.load <= idlest->load + kGroup * cost ? &own : idlest;
}

void Fleet::dispatch() {
  if (held_ > 0) return;
  while (!waiting_.empty()) {
    const auto found = journal_.find(waiting_.front());
    if (found == journal_.end()) {  // cancelled
      waiting_.pop_front();
      continue;
    }
    Server* server = choose(*found->second);
    if (!server) return;
    waiting_.pop_front();
    if (tells_of_draws(*server, *found->second)) send(*found->second, *server);
  }
}

// Whether the server's log-probs are those of the distribution drawn from; else the request ends here.
bool Fleet::tells_of_draws(const Server& server, Entry& entry) {
  const std::optional<Doubt> doubt = dialect_.doubt(server.facts, entry.request);
  if (!doubt) return true;
  const std::string text = server.label() + doubt->text;
  if (doubt->refuses) {
    finish(entry, HEXAD_FINISH_ERROR, doubt->about + ", and " + text);
  } else if (!std::exchange(warned_of_logprobs_, true)) {
    log_(HEXAD_LOG_WARN, text);
  }
  return !doubt->refuses;
}

void Fleet::send(Entry& entry, Server& server) {
  const uint64_t id = entry.request.id;
  entry.server = server.index;
  entry.stream = {}, entry.finish.clear(), entry.fault.clear(), entry.error_body.clear(), entry.answer.clear();
  entry.done = entry.whole = false, entry.tokens_before = entry.tokens.size();
  entry.idle_since.reset();
  if (server.running.empty()) server.last_progress = Clock::now();
  server.running.insert(id);
  server.load += entry.left();
  group_server_[entry.request.group] = server.index;
  entry.name = fmt::format("{}-{}-{}", run_name_, id, ++attempt_names_);
  HttpRequest request;
  request.method = "POST";
  request.url = server.url + server.facts.generate;
  request.body = dialect_.body_of(server.facts, ask_of(entry, server));
  request.api_key = server.api_key;
  if (!dialect_.streams()) request.timeout = std::chrono::ceil<Milliseconds>(settings_.deadlines.stall);
  entry.transfer = transfers_.start(std::move(request),
                                    {[this, id](long status, std::string_view bytes) { on_bytes(id, status, bytes); },
                                     [this, id](const HttpResult& result) { on_end(id, result); }});
}

Ask Fleet::ask_of(const Entry& entry, const Server& server) const {
  return {entry.request,
          entry.tokens,
          entry.stop_token_ids,
          entry.name,
          server.facts.salts ? fmt::format("{}-v{}.{}", run_name_, version_, flushes_) : "",
          settings_.seed_requests,
          settings_.routes.has_value()};
}

void Fleet::on_bytes(uint64_t id, long status, std::string_view bytes) {
  const auto found = journal_.find(id);
  if (found == journal_.end()) return;
  Entry& entry = *found->second;
  Server& server = *servers_[static_cast<size_t>(entry.server)];
  if (status != 200) {
    constexpr size_t kMost = 4096;
    entry.error_body.append(bytes.substr(0, kMost));
    if (entry.error_body.size() < kMost) return;
    transfers_.abort(entry.transfer);  // it may have no end
    on_end(id, HttpResult{.status = status, .error = {}});
    return;
  }
  entry.refused_since.reset();
  if (!dialect_.streams()) return collect(entry, bytes);
  const size_t before = entry.tokens.size();
  bool is_new = false;
  try {
    entry.stream.feed(bytes, [&](std::string_view data) {
      is_new |= take_chunk(entry, server,
                           dialect_.parse(server.facts, data, std::span(entry.tokens).subspan(entry.tokens_before)));
      return !entry.done;
    });
    is_new ? entry.idle_since.reset() : require_progress(entry);
  } catch (const std::exception& error) {
    entry.fault = error.what();
    abort(entry);
    on_end(id, HttpResult{.complete = false, .status = status, .error = {}});
    return;
  }
  if (entry.tokens.size() > before && (entry.request.stream || !entry.request.stop_strings.empty()) &&
      entry.finish.empty())
    outbox_.put_partial(entry.event(HEXAD_FINISH_NONE));
}

// Bytes that bring nothing (comments, events without a token) do not keep a request waiting for ever, even where its
// server goes on with others. Silence does not count: it may wait in the server's queue, and what ends that may come in
// pieces.
void Fleet::require_progress(Entry& entry) const {
  const Clock::time_point now = Clock::now();
  if (!entry.idle_since) entry.idle_since = now;
  const Seconds since = now - std::max(*entry.idle_since, released_);
  if (held_ == 0 && since > settings_.deadlines.stall)
    throw std::runtime_error(fmt::format("bytes, and no token for {:.1f} s", since.count()));
}

// Bounded: it may have no end.
void Fleet::collect(Entry& entry, std::string_view bytes) {
  entry.answer.append(bytes);
  if (entry.answer.size() <= kMostAnswer) return;
  entry.answer.clear();
  entry.fault = fmt::format("one of more than {} MiB", kMostAnswer >> 20);
  transfers_.abort(entry.transfer);
  on_end(entry.request.id, HttpResult{.complete = false, .status = 200, .error = {}});
}

void Fleet::take_answer(Entry& entry) {
  Server& server = *servers_[static_cast<size_t>(entry.server)];
  try {
    take_chunk(entry, server, dialect_.read_answer(server.facts, ask_of(entry, server), entry.answer));
    entry.done = true;
  } catch (const std::exception& error) {
    entry.fault = error.what();
  }
  std::string().swap(entry.answer);
}

bool Fleet::take_chunk(Entry& entry, Server& server, const Chunk& chunk) {
  const bool is_new = chunk.done || !chunk.tokens.empty() || !chunk.finish.empty();
  if (is_new) server.last_progress = Clock::now();
  if (chunk.done) {
    entry.done = true;
    return true;
  }
  require_known(chunk.tokens);
  require_given(chunk.spans);
  if (!entry.finish.empty() && !chunk.tokens.empty()) throw std::runtime_error("tokens after the stream has ended");
  entry.add(chunk, version_);
  server.load -= static_cast<int64_t>(chunk.tokens.size());
  if (!chunk.finish.empty()) entry.finish = chunk.finish;
  entry.whole = chunk.whole;
  return is_new;
}

// A model that is not ours has other tokens.
void Fleet::require_known(const std::vector<int32_t>& tokens) const {
  for (const int32_t token : tokens) {
    if (settings_.vocabulary > 0 && token >= settings_.vocabulary) {
      throw std::runtime_error(fmt::format("token {}, and the model has {}: is it the server of another model?", token,
                                           settings_.vocabulary));
    }
  }
}

// Newer weights than this run's are somebody else's, who gives them numbers too.
void Fleet::require_given(const std::vector<hexad_version_span>& spans) const {
  for (const hexad_version_span& span : spans) {
    if (span.version > given_) {
      throw std::runtime_error(
          fmt::format("its weights are called '{}', and the newest that this run has given it are '{}': does somebody "
                      "else update this server?",
                      span.version, given_));
    }
  }
}

void Fleet::abort(const Entry& entry) {
  if (!entry.transfer) return;
  transfers_.abort(entry.transfer);
  const std::optional<Post> post = dialect_.abort(entry.name);
  if (!post || entry.server < 0) return;
  const Server& server = *servers_[static_cast<size_t>(entry.server)];
  HttpRequest request{.method = "POST", .url = server.url + post->path, .body = post->body, .api_key = server.api_key};
  request.timeout = std::chrono::ceil<Milliseconds>(settings_.deadlines.probe);
  transfers_.start(std::move(request), {});
}

void Fleet::leave(Entry& entry) {
  if (entry.server < 0) return;
  Server& server = *servers_[static_cast<size_t>(entry.server)];
  server.running.erase(entry.request.id);
  server.load -= entry.left();
  entry.server = -1, entry.transfer = 0;
}

void Fleet::on_end(uint64_t id, const HttpResult& result) {
  const auto found = journal_.find(id);
  if (found == journal_.end()) return;
  Entry& entry = *found->second;
  if (!dialect_.streams() && result.complete && result.status == 200) take_answer(entry);
  settle(entry, result);
  dispatch();
}

// An attempt is over: the request has ended, or goes on elsewhere; the server is blamed for what is its fault.
void Fleet::settle(Entry& entry, const HttpResult& result) {
  Server& server = *servers_[static_cast<size_t>(entry.server)];
  leave(entry);
  if (result.no_descriptor) {  // our own trouble, and no attempt
    waiting_.push_front(entry.request.id);
    return wait_for_descriptors();
  }
  if (result.status == 429) return rest(entry, server, result);
  entry.count_attempt();
  if (result.status >= 400 && result.status < 500 && result.status != 408) {
    return finish(entry, HEXAD_FINISH_ERROR,
                  fmt::format("{} refused it with status {}: {}{}", server.label(), result.status,
                              error_text(entry.error_body), dialect_.mend(result.status)));
  }
  std::string why;
  if (!entry.fault.empty()) {
    why = "sent a wrong answer: " + entry.fault;
  } else if (result.status != 0 && result.status != 200) {
    why = fmt::format("answered with status {}: {}", result.status, error_text(entry.error_body));
  } else if (!result.complete) {
    why = (result.status ? "broke off its answer: " : "did not answer: ") + result.error;
  } else if (!entry.done) {
    why = "ended its answer before the stream's last event";
  }
  const int32_t ended = entry.ended_by_tokens();
  const bool stopped = entry.stopped();
  if (why.empty() && entry.finish == "length" && ended == HEXAD_FINISH_NONE)
    why = fmt::format("stopped for length after {} of {} tokens", entry.tokens.size(), entry.request.max_new_tokens);
  if (stopped || ended != HEXAD_FINISH_NONE) {  // all of it is here, whatever came after
    why.empty() ? void(server.failures = 0) : blame(server, why);
    server.rest.reset();
    return finish(entry, stopped ? HEXAD_FINISH_STOP : ended);
  }
  // Without a word the server let go of it, as it does when it is paused or sleeps: nobody is to blame.
  const bool faulty = !why.empty();
  if (!faulty) why = "let go of it (" + (entry.finish.empty() ? "no reason" : entry.finish) + ")";
  entry.avoid = server.index;
  wait_again(entry, server, why);
  if (!faulty) return;
  result.connected ? blame(server, why) : fail(server, why);
}

// No attempt, and nobody's fault: it waits as long as it is asked to, and ends where that is longer than for a server.
void Fleet::rest(Entry& entry, Server& server, const HttpResult& result) {
  const Clock::time_point now = Clock::now();
  if (!entry.refused_since) entry.refused_since = now;
  const Milliseconds delay = result.retry_after.count() > 0 ? result.retry_after : server.rest.next();
  const Seconds waits = now - *entry.refused_since + delay;
  const std::string said =
      fmt::format("{} has no room for it (status 429: {})", server.label(), error_text(entry.error_body));
  if (waits > settings_.deadlines.lost) {
    return finish(entry, HEXAD_FINISH_ERROR,
                  fmt::format("{} and asks to wait until {:.0f} s after it first had none; "
                              "policy.generation.{}.lost_timeout_s is {:.0f}. Raise it, or lower max_running_requests",
                              said, waits.count(), names_.section, settings_.deadlines.lost.count()));
  }
  if (now >= server.rests_until) {
    log_(HEXAD_LOG_WARN, fmt::format("request {}: {}: no requests go there for {:.1f} s", entry.request.id, said,
                                     Seconds(delay).count()));
  }
  server.rests_until = std::max(server.rests_until, now + delay);
  waiting_.push_front(entry.request.id);
  loop_.after(delay, [this] { dispatch(); });
}

void Fleet::wait_again(Entry& entry, const Server& server, const std::string& why) {
  const uint64_t id = entry.request.id;
  if (give_up(entry, why)) return;
  log_(HEXAD_LOG_WARN, fmt::format("request {}: {} {}. It goes on with the {} of {} tokens that it has", id,
                                   server.label(), why, entry.tokens.size(), entry.request.max_new_tokens));
  waiting_.push_front(id);
}

bool Fleet::give_up(Entry& entry, const std::string& why) {
  if (entry.in_vain < settings_.attempts) return false;
  finish(entry, HEXAD_FINISH_ERROR,
         fmt::format("{} attempts in a row brought no token; the last server {}", entry.in_vain, why));
  return true;
}

void Fleet::finish(Entry& entry, int32_t finish, std::string error) {
  outbox_.put_final(entry.event(finish, std::move(error)));
  journal_.erase(entry.request.id);
}

void Fleet::cancel(uint64_t id) {
  const auto found = journal_.find(id);
  if (found == journal_.end()) return;
  abort(*found->second);
  leave(*found->second);
  finish(*found->second, HEXAD_FINISH_ABORT);
  dispatch();
}

void Fleet::drop(uint64_t id) {
  const auto found = journal_.find(id);
  if (found == journal_.end()) return;
  abort(*found->second);
  leave(*found->second);
  journal_.erase(found);
  dispatch();
}

}  // namespace hexad::bridge
