#include "plugins/server_bridge/nursery.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>

namespace hexad::bridge {
namespace {

constexpr auto kLook = Milliseconds(200);
constexpr int kMostEnds = 5;  // of a server before any has been up

// Bytes of a file; 0 if it is not there.
uintmax_t size_of(const std::string& file) {
  std::error_code none;
  const uintmax_t size = std::filesystem::file_size(file, none);
  return none ? 0 : size;
}

// The end of a log in one line, of what came after the first `begin` bytes.
std::string said(const std::string& log, uintmax_t begin) {
  constexpr uintmax_t kMost = 600;
  std::string text = server::tail_of(log, std::min(kMost, size_of(log) - std::min(begin, size_of(log))));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

}  // namespace

Nursery::Nursery(EventLoop& loop, Fleet& fleet, const Dialect& dialect, const Settings& settings, std::string log_dir,
                 std::string scratch, int label, Log log)
    : loop_(loop),
      fleet_(fleet),
      dialect_(dialect),
      names_(dialect.names()),
      settings_(settings),
      log_dir_(std::move(log_dir)),
      scratch_(std::move(scratch)),
      label_(label),
      log_(std::move(log)) {}

void Nursery::start(const std::string& model_dir) {
  model_dir_ = model_dir;
  if (!nests_.empty()) return;
  nests_.resize(static_cast<size_t>(settings_.spawn.servers));
  try {
    for (size_t i = 0; i < nests_.size(); ++i) {
      nests_[i].log = fmt::format("{}/{}_{}_{}.log", log_dir_, names_.program, label_, i);
      hatch(i);
    }
  } catch (...) {
    for (size_t i = 0; i < nests_.size() && nests_[i].child; ++i)
      fleet_.lose(static_cast<int>(i), "was not started with the others");
    nests_.clear();
    throw;
  }
  look_around();
}

bool Nursery::starts_from(const std::string& model_dir) const {
  for (size_t i = 0; i < nests_.size(); ++i) {
    const bool starting = fleet_.servers()[i]->state == Server::State::starting;
    if (nests_[i].child && starting && nests_[i].model_dir == model_dir) return true;
  }
  return false;
}

// A free one that none of the others has been given: they may not listen yet.
int Nursery::own_port(int64_t place) const {
  const SpawnSettings& spawn = settings_.spawn;
  for (size_t tried = 0;; ++tried) {
    const std::optional<int> free = server::free_port(spawn.port_low, spawn.port_high, place);
    if (!free) {
      sdk::fail(HEXAD_RESOURCE_EXHAUSTED,
                "port_range_low and port_range_high: all ports from %lld to %lld are taken, wanted a free one for a %s "
                "server",
                static_cast<long long>(spawn.port_low), static_cast<long long>(spawn.port_high), names_.engine);
    }
    const int port = *free;
    const bool given = std::ranges::any_of(nests_, [&](const Nest& nest) { return nest.child && nest.port == port; });
    if (!given || tried == nests_.size()) return port;
    place = port - spawn.port_low + 1;
  }
}

void Nursery::hatch(size_t index) {
  Nest& nest = nests_[index];
  const SpawnSettings& spawn = settings_.spawn;
  const auto place = static_cast<int64_t>(index) + 61 * label_ + 7 * ::getpid();
  const int port = own_port(place);
  const std::string key = server::random_key();
  server::Command command;
  command.arguments = spawn.command;
  command.environment = spawn.environment;
  command.scratch = scratch_;
  dialect_.launch(command, {model_dir_, port, key});
  command.arguments.insert(command.arguments.end(), spawn.arguments.begin(), spawn.arguments.end());
  command.log = nest.log;
  nest.log_begin = size_of(nest.log);
  nest.port = port;
  nest.child = std::make_unique<server::Child>(command);
  nest.model_dir = model_dir_;
  nest.since = Clock::now();
  log_(HEXAD_LOG_INFO, fmt::format("{} server {} starts on port {} with {} (process {}, log {})", names_.engine, index,
                                   port, model_dir_, nest.child->pid(), nest.log));
  fleet_.admit(static_cast<int>(index), fmt::format("http://127.0.0.1:{}", port), key);
}

void Nursery::look_after(size_t index) {
  Nest& nest = nests_[index];
  const auto now = Clock::now();
  if (!nest.child) {
    if (now >= nest.next_start) hatch(index);
    return;
  }
  const Server& server = *fleet_.servers()[index];
  const auto lose = [&](const std::string& why) {
    const Milliseconds delay = nest.backoff.next();
    log_(HEXAD_LOG_WARN,
         fmt::format("{} {}. It is started again in {:.1f} s", server.label(), why, Seconds(delay).count()));
    fleet_.lose(static_cast<int>(index), why);
    nest.child.reset();
    nest.next_start = now + delay;
  };
  if (const std::optional<std::string> ended = nest.child->ended()) {
    const std::string why =
        fmt::format("ended with {}; the end of its log: {}", *ended, said(nest.log, nest.log_begin));
    lose(why);
    nest.ends += !fleet_.ever_up();
    return give_up_if_hopeless(why);
  }
  if (server.up() || server.waits_for_weights()) {
    nest.since = now;
    nest.backoff.reset();
    return;
  }
  // A live process that does not serve: it starts, it will be well again, or it hangs.
  const bool starting = server.state == Server::State::starting;
  const Seconds most = starting ? settings_.deadlines.startup : settings_.deadlines.stall;
  if (now - nest.since > most)
    lose(fmt::format("did not {} in {:.0f} s and was killed; the end of its log: {}",
                     starting ? "get ready" : "get well again", most.count(), said(nest.log, nest.log_begin)));
}

void Nursery::give_up_if_hopeless(const std::string& why) {
  if (fleet_.ever_up() || std::ranges::any_of(nests_, [](const Nest& nest) { return nest.ends < kMostEnds; })) return;
  fleet_.despair(fmt::format(
      "no {0} server starts: every one of them has ended {1} times; the newest {2}. Is {0} installed where `{3}` looks "
      "for it (policy.generation.{4}.server_command)? The log: {5}",
      names_.engine, kMostEnds, why, settings_.spawn.command.empty() ? "" : settings_.spawn.command.front(),
      names_.section, nests_.front().log));
}

void Nursery::look_around() {
  for (size_t i = 0; i < nests_.size(); ++i) {
    try {
      look_after(i);
    } catch (const std::exception& error) {
      nests_[i].next_start = Clock::now() + nests_[i].backoff.next();
      log_(HEXAD_LOG_WARN, fmt::format("{} server {} cannot be started: {}", names_.engine, i, error.what()));
    }
  }
  loop_.after(kLook, [this] { look_around(); });
}

}  // namespace hexad::bridge
