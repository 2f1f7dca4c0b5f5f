// The Fleet's other half: which servers take requests.
#include <fmt/format.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "plugins/vllm_bridge/fleet/fleet.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kTick = Milliseconds(100);
constexpr auto kHealthEvery = std::chrono::seconds(5);
constexpr int kUnhealthy = 3;  // bad answers of /health in a row

Milliseconds to_ms(Seconds seconds) { return std::chrono::ceil<Milliseconds>(seconds); }

// The first value of that name anywhere in the tree, as text; "" if there is none.
std::string find_text(const Json& tree, const std::string& name) {
  if (tree.is_object()) {
    if (const auto found = tree.find(name); found != tree.end() && found->is_primitive() && !found->is_null())
      return found->is_string() ? found->get<std::string>() : found->dump();
  }
  if (tree.is_structured()) {
    for (const Json& child : tree) {
      if (std::string text = find_text(child, name); !text.empty()) return text;
    }
  }
  return "";
}

// The backend of --weight-transfer-config.
std::string weight_transfer_of(const Json& info) {
  if (!info.is_object()) return "";
  const Json config = info.value("vllm_config", Json());
  return config.is_object() ? find_text(config.value("weight_transfer_config", Json()), "backend") : "";
}

}  // namespace

void Fleet::ask(Server& server, const std::string& method, const std::string& path, std::string body, Seconds deadline,
                Then then) {
  HttpRequest request;
  request.method = method, request.url = server.url + path, request.body = std::move(body);
  request.api_key = server.api_key;
  request.timeout = to_ms(deadline);
  request.connect = std::min(request.connect, request.timeout);
  if (server.probe) transfers_.abort(server.probe);
  server.probe = vllm::ask(transfers_, std::move(request), [&server, then = std::move(then)](const Answer& answer) {
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
void Fleet::probe(Server& server) {
  ask(server, "GET", "/health", "", settings_.deadlines.probe, [this, &server](const Answer& answer) {
    if (answer.ok()) return probe_version(server);
    put_off(server, "/health", answer);
  });
}

void Fleet::probe_version(Server& server) {
  ask(server, "GET", "/version", "", settings_.deadlines.probe, [this, &server](const Answer& answer) {
    if (answer.failed()) return put_off(server, "/version", answer);
    const Json json = Json::parse(answer.body, nullptr, false);
    server.can = capabilities_of(answer.ok() && json.is_object() ? find_text(json, "version") : "");
    if (too_old(server.can.version)) {
      return put_off(server, fmt::format("vLLM {} is older than {}, the oldest that this bridge is for",
                                         server.can.version, kOldestVersion));
    }
    probe_api(server);
  });
}

void Fleet::probe_api(Server& server) {
  const std::string path(path_of(GenerationApi::tokens));
  ask(server, "POST", path, "{}", settings_.deadlines.probe, [this, &server](const Answer& answer) {
    const long status = answer.result.status;
    if (answer.failed()) return put_off(server, "probe of the generation API", answer);
    if (status == 401 || status == 403) {
      return put_off(server,
                     fmt::format("it refuses the API key (status {}). Wanted: the key of the server in the variable "
                                 "that policy.generation.vllm_cfg.api_key_env_var names",
                                 status));
    }
    server.api = status == 404 || status == 405 || status == 501 ? GenerationApi::completions : GenerationApi::tokens;
    probe_dev_mode(server);
  });
}

void Fleet::probe_dev_mode(Server& server) {
  ask(server, "GET", "/is_paused", "", settings_.deadlines.probe, [this, &server](const Answer& answer) {
    if (answer.failed()) return put_off(server, "/is_paused", answer);
    server.dev_mode = answer.ok();
    const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
    server.paused = answer.ok() && find_text(json, "is_paused") == "true";
    if (server.dev_mode) return probe_config(server);
    check_weights(server);
  });
}

void Fleet::probe_config(Server& server) {
  ask(server, "GET", "/server_info?config_format=json", "", settings_.deadlines.probe,
      [this, &server](const Answer& answer) {
        // A version that cannot say it all answers with an error, and serves all the same.
        if (!answer.result.complete) return put_off(server, "/server_info", answer);
        const Json json = answer.ok() ? Json::parse(answer.body, nullptr, false) : Json();
        server.logprobs_mode = find_text(json, "logprobs_mode");
        server.sleep_mode = find_text(json, "enable_sleep_mode") == "true";
        server.weight_transfer = weight_transfer_of(json);
        check_weights(server);
      });
}

// A server that was away while weights changed, or that was started anew by somebody else, loads those in force.
void Fleet::check_weights(Server& server) {
  if (server.version == version_) {
    if (!server.paused) return open(server);
    return ask(server, "POST", "/resume", "", settings_.deadlines.control, [this, &server](const Answer& answer) {
      if (answer.ok()) {
        server.paused = false;
        return check_weights(server);  // others may have come into force
      }
      put_off(server, "/resume", answer);
    });
  }
  if (!weights_dir_) return wait_for_weights(server);
  const int64_t wanted = version_;
  Json body = {{"method", "reload_weights"}};
  body["kwargs"]["weights_path"] = weights_dir_->empty() ? settings_.model_name : *weights_dir_;
  log_(HEXAD_LOG_INFO, fmt::format("{}: it loads the weights in force (version {})", server.label(), wanted));
  ask(server, "POST", "/collective_rpc", body.dump(), settings_.deadlines.control,
      [this, &server, wanted](const Answer& answer) {
        if (!answer.ok()) return put_off(server, "reload_weights", answer);
        server.version = wanted;
        server.paused = true;  // it may be: an update broke off
        check_weights(server);
      });
}

void Fleet::wait_for_weights(Server& server) {
  const bool new_state = !server.waits_for_weights();
  server.was_there = true;
  server.state = Server::State::waiting;
  server.last_error = fmt::format(
      "it waits for the next weight update: of version {}, which went from GPU to GPU, there is no copy "
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
       fmt::format("{} takes requests: vLLM {}, {}{}{}", server.label(),
                   server.can.version.empty() ? "of unknown version" : server.can.version, path_of(server.api),
                   server.dev_mode ? "" : ", no development endpoints (no refit)",
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
    transfers_.abort(entry.transfer);
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
  ask(server, "GET", "/health", "", settings_.deadlines.probe, [this, &server](const Answer& answer) {
    if (answer.result.no_descriptor) return wait_for_descriptors();
    server.unhealthy = answer.ok() ? 0 : server.unhealthy + 1;
    const bool dead = answer.result.complete && !answer.ok();
    if (answer.ok() || !(server.up() || server.waits_for_weights())) return;
    if (dead || server.unhealthy >= kUnhealthy) return fail(server, "is not well, /health: " + answer.trouble());
    log_(HEXAD_LOG_WARN, fmt::format("{} may not be well, /health: {}. It is asked again in {} s", server.label(),
                                     answer.trouble(), kHealthEvery.count()));
  });
}

void Fleet::stall(Server& server, const std::string& why) {
  const std::vector<uint64_t> running(server.running.begin(), server.running.end());
  for (const uint64_t id : running) {
    Entry& entry = *journal_.at(id);
    entry.count_attempt();
    if (entry.in_vain < settings_.attempts) continue;
    transfers_.abort(entry.transfer);
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
       fmt::format("no connection to a vLLM server can be opened: this process has as many open files as it may have "
                   "({}). Requests wait; raise its limit (ulimit -Hn), or lower "
                   "policy.generation.vllm_cfg.max_running_requests",
                   limit.rlim_cur));
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
  std::string text = fmt::format("no vLLM server has been there for {:.0f} s:", Seconds(now - last_up_).count());
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

}  // namespace hexad::vllm
