#include "plugins/server_bridge/server_pool.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "plugins/server_bridge/refit/checkpoint.hpp"

namespace hexad::bridge {
namespace {

namespace fs = std::filesystem;

// A connection a running request, and more than shells allow by default.
void raise_descriptor_limit(const Names& names, const Settings& settings, int64_t servers, const Log& log) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // else connections that are refused say so
  constexpr rlim_t kOthers = 128;      // files
  const rlim_t wanted = static_cast<rlim_t>(servers) * static_cast<rlim_t>(settings.max_running) + kOthers;
  if (limit.rlim_max >= wanted) return;
  log(HEXAD_LOG_WARN,
      fmt::format("this process may have {} open files, and {} {} servers with {} requests each may need {}: requests "
                  "beyond wait for others to end. Raise the limit (ulimit -Hn), or lower "
                  "policy.generation.{}.max_running_requests",
                  limit.rlim_max, servers, names.engine, settings.max_running, wanted, names.section));
}

std::string log_dir(const Settings& settings, const WorkDir& work) {
  const std::string& dir = settings.spawn.log_dir;
  if (dir.empty()) return work.path().string();
  fs::create_directories(dir);
  return fs::absolute(dir).string();
}

[[noreturn]] void refuse_cancelled(const Names& names, const char* what) {
  sdk::fail(HEXAD_CANCELLED, "the weight update was cancelled while %s %s", names.engine, what);
}

}  // namespace

ServerPool::ServerPool(const Dialect& dialect, const Settings& settings, const WorkDir& work, int rank, Outbox& outbox,
                       const Log& log)
    : dialect_(dialect),
      names_(dialect.names()),
      settings_(settings),
      fleet_(loop_, dialect_, settings_, outbox, log),
      control_(loop_, fleet_),
      nursery_(loop_, fleet_, dialect_, settings_, log_dir(settings_, work), work.path().string(), rank, log),
      first_starts_end_(Clock::now() + std::chrono::ceil<Milliseconds>(
                                           std::min(settings_.deadlines.startup, settings_.deadlines.control))) {
  raise_descriptor_limit(names_, settings_, size(), log);
  if (!spawns()) {
    loop_.run([&] {
      for (size_t i = 0; i < settings_.urls.size(); ++i)
        fleet_.admit(static_cast<int>(i), settings_.urls[i], settings_.api_key);
    });
    return;
  }
  const char* const lacks = dialect_.lacks();
  has_weights_ = !settings_.takes_weights || (!lacks && bridge::has_weights(settings_.model_name));
  if (has_weights_)
    loop_.run([&] { nursery_.start(settings_.model_name); });
  else
    log(HEXAD_LOG_INFO, fmt::format("the model has no {}: its {} servers start with those of the first update",
                                    lacks ? lacks : "weights", names_.engine));
}

int64_t ServerPool::size() const {
  return spawns() ? settings_.spawn.servers : static_cast<int64_t>(settings_.urls.size());
}

void ServerPool::halt() {
  loop_.run([&] { fleet_.hold(); });
  std::vector<Target> targets = control_.up();
  for (const Target& target : targets) {
    if (!target.facts.updates) loop_.run([&] { fleet_.recall(target.index); });
  }
  std::erase_if(targets, [](const Target& target) { return !target.facts.updates; });
  control_.post_or_fail(targets, dialect_.pause(), settings_.deadlines.control);
}

std::vector<Target> ServerPool::up_with_updates() {
  std::vector<Target> targets = control_.up();
  std::erase_if(targets, [](const Target& target) { return !target.facts.updates; });
  return targets;
}

void ServerPool::post_each(std::vector<Target>& targets, const std::vector<Post>& posts) {
  for (const Post& post : posts) control_.post_or_fail(targets, post, settings_.deadlines.control);
}

void ServerPool::unhalt() {
  std::vector<Target> targets = up_with_updates();
  control_.post_or_fail(targets, dialect_.resume(), settings_.deadlines.control);
  loop_.run([&] { fleet_.release(); });
}

void ServerPool::pause() {
  if (!std::exchange(paused_, true)) halt();
}

void ServerPool::resume() {
  if (std::exchange(paused_, false)) unhalt();
}

void ServerPool::sleep(const sdk::Call& call, int32_t level) {
  if (level != 1 && level != 2) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "sleep: got level %d, wanted 1 (free the KV cache) or 2 (free the weights too)",
              level);
  }
  if (std::exchange(asleep_, true)) return;
  const bool held = std::exchange(without_weights_, without_weights_ || level == 2);  // by a sleep before
  loop_.run([&] {
    if (!held) fleet_.hold();
    for (const auto& server : fleet_.servers()) fleet_.recall(server->index);
  });
  std::vector<Target> targets = control_.takes_weights();
  const bool all = std::all_of(targets.begin(), targets.end(), [](const Target& t) { return t.facts.sleeps; });
  if (!all) {
    call.log(
        HEXAD_LOG_DEBUG,
        fmt::format("a {} server has no sleep mode: it keeps its memory while the policy computes", names_.engine));
  }
  std::erase_if(targets, [](const Target& target) { return !target.facts.sleeps; });
  sleep_level_ = level;
  post_each(targets, dialect_.sleep(level));
}

void ServerPool::wake() {
  if (!std::exchange(asleep_, false)) return;
  std::vector<Target> targets = control_.takes_weights();
  std::erase_if(targets, [](const Target& target) { return !target.facts.sleeps; });
  post_each(targets, dialect_.wake(sleep_level_));
  if (!without_weights_) loop_.run([&] { fleet_.release(); });  // else the next update does
}

void ServerPool::flush_cache() {
  loop_.run([&] { fleet_.forget_prefixes(); });
  control_.post(up_with_updates(), dialect_.flush(), settings_.deadlines.control);
}

void ServerPool::await_first_starts(const sdk::Call& call) {
  bool told = false;
  while (control_.any_on_its_first_start() && Clock::now() < first_starts_end_) {
    if (call.cancelled()) refuse_cancelled(names_, "servers start");
    if (!std::exchange(told, true)) {
      call.log(HEXAD_LOG_INFO, fmt::format("the first weight update waits for {} servers to start", names_.engine));
    }
    std::this_thread::sleep_for(Milliseconds(50));
  }
}

void ServerPool::await_any(const sdk::Call& call) {
  const auto deadline = Clock::now() + std::chrono::ceil<Milliseconds>(settings_.deadlines.control);
  while (Clock::now() < deadline && control_.takes_weights().empty()) {
    if (call.cancelled()) refuse_cancelled(names_, "servers are away");
    std::this_thread::sleep_for(Milliseconds(50));
  }
}

void ServerPool::put_in_force(int64_t version, const std::vector<Target>& holders, const std::optional<fs::path>& dir) {
  loop_.run([&] {
    for (const Target& target : holders) fleet_.holds(target.index, target.incarnation, version);
    fleet_.set_version(version, dir ? std::optional(dir->string()) : std::nullopt);
    if (dir && spawns()) nursery_.start(dir->string());
  });
  has_weights_ = true;
  // Of sleep's hold; a pause's is another.
  if (std::exchange(without_weights_, false) && !asleep_) loop_.run([&] { fleet_.release(); });
}

bool ServerPool::starts_from(const fs::path& dir) {
  return loop_.run([&] { return nursery_.starts_from(dir.string()); });
}

bool ServerPool::has_copy() {
  return loop_.run([&] { return fleet_.has_copy(); });
}

std::string ServerPool::last_errors() {
  return loop_.run([&] {
    std::string text;
    for (const auto& server : fleet_.servers()) text += " " + server->label() + ": " + server->last_error + ";";
    return text;
  });
}

}  // namespace hexad::bridge
