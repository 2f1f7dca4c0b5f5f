// The Fleet's other half: which servers take requests.
#include <fmt/format.h>
#include <sys/resource.h>

#include "plugins/server_bridge/fleet/fleet.hpp"

namespace hexad::bridge {
namespace {

constexpr auto kTick = Milliseconds(100);
constexpr auto kHealthEvery = std::chrono::seconds(5);
constexpr int kUnhealthy = 3;  // bad answers of /health in a row

Milliseconds to_ms(Seconds seconds) { return std::chrono::ceil<Milliseconds>(seconds); }

}  // namespace

void Fleet::ask(Server& server, const std::string& method, const std::string& path, std::string body, Seconds deadline,
                Then then) {
  HttpRequest request;
  request.method = method, request.url = server.url + path, request.body = std::move(body);
  request.api_key = server.api_key;
  request.timeout = to_ms(deadline);
  request.connect = std::min(request.connect, request.timeout);
  if (server.probe) transfers_.abort(server.probe);
  server.probe =
      http::client::ask(transfers_, std::move(request), [&server, then = std::move(then)](const Answer& answer) {
        server.probe = 0;
        then(answer);
      });
}

void Fleet::admit(int index, const std::string& url, const std::string& api_key) {
  const auto at = static_cast<size_t>(index);
  if (at >= servers_.size()) {
    servers_.resize(at + 1);
    servers_[at] = std::make_unique<Server>();
  }
  Server& server = *servers_[at];
  ++server.incarnation;
  server.engine = names_.engine;
  server.index = index, server.url = url, server.api_key = api_key;
  server.state = Server::State::starting, server.since = Clock::now();
  server.version = weights_dir_ ? version_ : kUnknownVersion;  // of the folder that it is started from
  server.backoff.reset();
  probe(server);
}

void Fleet::lose(int index, const std::string& why) {
  Server& server = *servers_[static_cast<size_t>(index)];
  fail(server, why);
  server.was_there = true;
  loop_.forget(std::exchange(server.timer, 0));  // it is admitted again when its process is
  if (server.probe) transfers_.abort(std::exchange(server.probe, 0));
}

// Up, or up again: asks in turn whether it is well, what it is, what it has, and which weights it holds.
void Fleet::probe(Server& server, size_t step) {
  const std::span<const Probe> probes = dialect_.probes();
  if (step == probes.size()) return meet(server);
  const Probe& next = probes[step];
  ask(server, next.method, next.path, next.body, settings_.deadlines.probe,
      [this, &server, &next, step](const Answer& answer) {
        const Verdict verdict = next.read(answer, server.facts);
        switch (verdict.kind) {
          case Verdict::next: return probe(server, step + 1);
          case Verdict::ready: return meet(server);
          case Verdict::trouble: return put_off(server, next.name, answer);
          case Verdict::wrong: return put_off(server, verdict.text);
        }
      });
}

void Fleet::meet(Server& server) {
  const std::string why = dialect_.mismatch(server.facts);
  if (why.empty() && !server.facts.notice.empty()) log_(HEXAD_LOG_WARN, server.label() + server.facts.notice);
  why.empty() ? check_weights(server) : put_off(server, why);
}

// Whether the server is to be told first what its weights are called.
bool Fleet::name_weights(Server& server) {
  const std::optional<Post> post = dialect_.name_weights(server.facts, version_);
  if (!post) return false;
  const std::string name = std::to_string(version_);
  ask(server, "POST", post->path, post->body, settings_.deadlines.control,
      [this, &server, name, path = post->path](const Answer& answer) {
        if (!answer.ok()) return put_off(server, path, answer);
        server.facts.weight_version = name;
        check_weights(server);
      });
  return true;
}

// A server that was away while weights changed, or that was started anew by somebody else, loads those in force.
void Fleet::check_weights(Server& server) {
  if (server.version == version_) {
    if (name_weights(server)) return;
    if (!server.facts.paused) return open(server);
    const Post resume = dialect_.resume();
    return ask(server, "POST", resume.path, resume.body, settings_.deadlines.control,
               [this, &server, path = resume.path](const Answer& answer) {
                 if (!answer.ok()) return put_off(server, path, answer);
                 server.facts.paused = false;
                 check_weights(server);  // others may have come into force
               });
  }
  if (!weights_dir_) return wait_for_weights(server);
  const int64_t wanted = version_;
  const Post load = dialect_.load(weights_dir_->empty() ? settings_.model_name : *weights_dir_, wanted);
  log_(HEXAD_LOG_INFO, fmt::format("{}: it loads the weights in force (version {})", server.label(), wanted));
  ask(server, "POST", load.path, load.body, settings_.deadlines.control,
      [this, &server, wanted, path = load.path](const Answer& answer) {
        if (!answer.ok()) return put_off(server, path, answer);
        server.version = wanted;
        server.facts.weight_version = std::to_string(wanted);
        server.facts.paused = true;  // it may be: an update broke off
        check_weights(server);
      });
}

void Fleet::wait_for_weights(Server& server) {
  const bool new_state = !server.waits_for_weights();
  server.was_there = true;
  server.state = Server::State::waiting;
  const char* const lacks = version_ == 0 ? dialect_.lacks() : nullptr;
  if (lacks) {
    server.last_error = fmt::format("it waits for the first weight update: the model's own folder has no {}", lacks);
    if (new_state) log_(HEXAD_LOG_INFO, server.label() + ": " + server.last_error);
    return;
  }
  server.last_error = fmt::format(
      "it waits for the next weight update: of version {}, which went by no disk, there is no copy "
      "(policy.generation.refit_transport: disk leaves one)",
      version_);
  if (new_state) log_(HEXAD_LOG_WARN, server.label() + ": " + server.last_error);
}

// Up, with weights that are no longer in force.
void Fleet::catch_up(Server& server) {
  server.state = Server::State::down, server.since = last_up_ = Clock::now();
  recall(server.index);
  check_weights(server);
}

void Fleet::open(Server& server) {
  const bool first = !std::exchange(ever_up_, true);
  server.was_there = true;
  server.state = Server::State::up, server.since = last_up_ = server.last_progress = Clock::now();
  server.unhealthy = server.failures = 0;
  log_(HEXAD_LOG_INFO,
       fmt::format("{} takes requests: {} {}, {}{}{}", server.label(), names_.engine,
                   server.facts.version.empty() ? "of unknown version" : server.facts.version, server.facts.generate,
                   server.facts.updates ? "" : ", no development endpoints (no refit)",
                   first || server.last_error.empty() ? "" : "; its last failure: " + server.last_error));
  server.backoff.reset();
  outbox_.set_trouble("");
  dispatch();
}

Milliseconds Fleet::retry(Server& server) {
  loop_.forget(server.timer);
  const Milliseconds delay = server.backoff.next();
  server.timer = loop_.after(delay, [this, &server] {
    server.timer = 0;
    probe(server);
  });
  return delay;
}

// It does not answer as a server that takes requests. That it does not listen yet is logged by nobody, and says less
// than what is known of its end before.
void Fleet::put_off(Server& server, const std::string& call, const Answer& answer) {
  const std::string why = call + ": " + answer.trouble();
  if (answer.result.connected) return put_off(server, why);
  if (server.last_error.empty()) server.last_error = why;
  retry(server);
}

void Fleet::put_off(Server& server, const std::string& why) {
  server.last_error = why;
  const Seconds delay = retry(server);
  log_(HEXAD_LOG_WARN,
       fmt::format("{} is not ready: {}. It is asked again in {:.1f} s", server.label(), why, delay.count()));
}

void Fleet::blame(Server& server, const std::string& why) {
  constexpr int kBreaker = 3;
  server.last_error = why;
  if (server.up() && ++server.failures >= kBreaker)
    fail(server, fmt::format("{}, the {}rd failure in a row", why, kBreaker));
}

void Fleet::recall(int index) {
  Server& server = *servers_[static_cast<size_t>(index)];
  const std::vector<uint64_t> running(server.running.begin(), server.running.end());
  for (const uint64_t id : running) {
    Entry& entry = *journal_.at(id);
    abort(entry);
    leave(entry);
    const int32_t ended = entry.stopped() ? HEXAD_FINISH_STOP : entry.ended_by_tokens();  // its tokens are all here
    ended == HEXAD_FINISH_NONE ? waiting_.push_front(id) : finish(entry, ended);
  }
}

// It takes no requests any more; those that it has go on elsewhere.
void Fleet::fail(Server& server, const std::string& why) {
  const bool was_up = server.up();
  ++server.incarnation;
  server.last_error = why;
  if (server.state == Server::State::starting) return;
  server.state = Server::State::down, server.since = Clock::now();
  if (was_up) {
    last_up_ = Clock::now();
    log_(HEXAD_LOG_WARN, fmt::format("{} {}. Its {} requests go on elsewhere, or when it is back", server.label(), why,
                                     server.running.size()));
  }
  recall(server.index);
  if (weights_dir_ != "") server.version = kUnknownVersion;  // it may come back as another process
  retry(server);
  dispatch();
}

void Fleet::spoil(int index, const std::string& why) {
  servers_[static_cast<size_t>(index)]->version = kUnknownVersion;
  fail(index, why);
}

void Fleet::check_health(Server& server) {
  if (server.probe || Clock::now() - server.since < kHealthEvery) return;
  server.since = Clock::now();
  ask(server, "GET", dialect_.health(), "", settings_.deadlines.probe, [this, &server](const Answer& answer) {
    if (answer.result.no_descriptor) return wait_for_descriptors();
    const bool well = dialect_.is_well(answer);
    server.unhealthy = well ? 0 : server.unhealthy + 1;
    const bool dead = answer.result.complete && !well;
    if (well || !(server.up() || server.waits_for_weights())) return;
    if (dead || server.unhealthy >= kUnhealthy)
      return fail(server, fmt::format("is not well, {}: {}", dialect_.health(), answer.trouble()));
    log_(HEXAD_LOG_WARN, fmt::format("{} may not be well, {}: {}. It is asked again in {} s", server.label(),
                                     dialect_.health(), answer.trouble(), kHealthEvery.count()));
  });
}

void Fleet::stall(Server& server, const std::string& why) {
  const std::vector<uint64_t> running(server.running.begin(), server.running.end());
  for (const uint64_t id : running) {
    Entry& entry = *journal_.at(id);
    entry.count_attempt();
    if (entry.in_vain < settings_.attempts) continue;
    abort(entry);
    leave(entry);
    give_up(entry, why);
  }
  fail(server, why);
}

void Fleet::wait_for_descriptors() {
  if (std::exchange(short_of_descriptors_, true)) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  log_(HEXAD_LOG_WARN,
       fmt::format("no connection to a {} server can be opened: this process has as many open files as it may have "
                   "({}). Requests wait; raise its limit (ulimit -Hn), or lower "
                   "policy.generation.{}.max_running_requests",
                   names_.engine, limit.rlim_cur, names_.section));
  hold();
  loop_.after(kDescriptorWait, [this] {
    short_of_descriptors_ = false;
    release();
  });
}

void Fleet::check_lost() {
  const auto now = Clock::now();
  if (servers_.empty() || any_up()) {
    last_up_ = now;
    return;
  }
  const Seconds most = ever_up_ ? settings_.deadlines.lost : settings_.deadlines.startup;
  if (now - last_up_ < most) return;
  std::string text =
      fmt::format("no {} server has been there for {:.0f} s:", names_.engine, Seconds(now - last_up_).count());
  for (const auto& server : servers_)
    text += fmt::format(" {}: {};", server->label(), server->last_error.empty() ? "silent" : server->last_error);
  outbox_.set_trouble(text + " start them again, or look into their logs");
}

void Fleet::look_around() {
  const auto now = Clock::now();
  for (const auto& server : servers_) {
    if (server->waits_for_weights()) check_health(*server);
    if (!server->up()) continue;
    if (held_ == 0 && !server->running.empty() && now - server->last_progress > settings_.deadlines.stall) {
      stall(*server, fmt::format("has sent no token for {:.1f} s", Seconds(now - server->last_progress).count()));
    } else {
      check_health(*server);
    }
  }
  check_lost();
  loop_.after(kTick, [this] { look_around(); });
}

}  // namespace hexad::bridge
