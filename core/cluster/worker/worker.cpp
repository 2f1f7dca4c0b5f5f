#include "core/cluster/worker/worker.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <limits>

#include "core/cluster/worker/engine.hpp"
#include "core/cluster/worker/link.hpp"
#include "core/plugin/crash_report.hpp"
#include "core/plugin/kind/instance_base.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::cluster {
namespace {

// A step takes what the one before has freed. Given back to the system in between, it would be cleared and mapped anew,
// page by page. What is larger than glibc's largest threshold goes back all the same, a KV cache that sleeps too.
void keep_freed_memory() {
#if defined(__GLIBC__)
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

// The error that `work` ends with, if it does.
template <typename Work>
std::optional<protocol::Failure> failure_of(const std::string& name, Work&& work) {
  try {
    work();
    return std::nullopt;
  } catch (const plugin::PluginError& error) {
    const bool lost_peer = error.code() == HEXAD_UNAVAILABLE || error.code() == HEXAD_DEADLINE_EXCEEDED;
    return protocol::Failure{error.what(), error.kind(), lost_peer};
  } catch (const Error& error) {
    return protocol::Failure{error.what(), error.kind()};
  } catch (const std::exception& error) {
    return protocol::Failure{fmt::format("{}: {}", name, error.what()), ErrorKind::internal};
  }
}

constexpr int kLookMs = 5;  // between looks at what has ended

// Between commands requests go on. An error of theirs is reported at once, and answers every later command.
void serve(const Bootstrap& bootstrap) {
  WorkerLink link(bootstrap);
  WorkerEngine engine(bootstrap, link);
  std::optional<protocol::Failure> failure;
  while (true) {
    std::optional<Message> command = engine.serves() && !failure ? link.next_command(kLookMs) : link.next_command();
    if (!command) {
      failure = failure_of("serving requests", [&] { engine.hand_out(); });
      if (failure) link.event(protocol::Failed{*failure});
      continue;
    }
    if (command->command == protocol::name_of<protocol::Shutdown>()) break;
    Message answer;
    std::optional<protocol::Failure> refused = failure;
    if (!refused) refused = failure_of(command->command, [&] { answer = engine.handle(*command); });
    link.answer(refused ? protocol::to_message(*refused) : answer);
  }
}

}  // namespace

std::string to_text(const Bootstrap& bootstrap) {
  return json_text(
      Json{{"endpoint", bootstrap.endpoint}, {"server_key", bootstrap.server_key}, {"rank", bootstrap.rank}});
}

Bootstrap bootstrap_from_text(const std::string& text) {
  try {
    const Json json = parse_json<Json>(text);
    Bootstrap bootstrap;
    bootstrap.endpoint = json.at("endpoint"), bootstrap.server_key = json.at("server_key");
    bootstrap.rank = json.at("rank");
    return bootstrap;
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::worker,
         "`hexad worker` is started by `hexad train`, which tells it where to connect; it is not for the command line");
  }
}

void run_worker(const Bootstrap& bootstrap, bool own_process) {
  if (own_process) plugin::install_crash_report(), keep_freed_memory();
  serve(bootstrap);
  if (!own_process) return;
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace hexad::cluster
