#include "core/cluster/worker/worker.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <limits>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "core/cluster/worker/engine.hpp"
#include "core/cluster/worker/link.hpp"
#include "core/plugin/crash_report.hpp"
#include "core/plugin/kind/instance_base.hpp"

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

Message error_answer(ErrorKind kind, const std::string& text) {
  Message answer;
  answer.header["error"] = text;
  answer.header["error_kind"] = static_cast<int>(kind);
  return answer;
}

// What `work` answers, or the error that it ends with.
template <typename Work>
Message answer_of(const std::string& name, Work&& work) {
  try {
    return work();
  } catch (const plugin::PluginError& error) {
    Message answer = error_answer(error.kind(), error.what());
    answer.header["lost_peer"] = error.code() == HEXAD_UNAVAILABLE || error.code() == HEXAD_DEADLINE_EXCEEDED;
    return answer;
  } catch (const Error& error) {
    return error_answer(error.kind(), error.what());
  } catch (const std::exception& error) {
    return error_answer(ErrorKind::internal, fmt::format("{}: {}", name, error.what()));
  }
}

constexpr int kLookMs = 5;  // between looks at what has ended

// Between commands requests go on. An error of theirs is told at once, and again to whoever asks next.
void serve(const Bootstrap& bootstrap) {
  WorkerLink link(bootstrap);
  WorkerEngine engine(bootstrap, link);
  std::optional<Message> failure;
  while (true) {
    std::optional<Message> command = engine.serves() && !failure ? link.next_command(kLookMs) : link.next_command();
    if (!command) {
      Message answer = answer_of("serving requests", [&] { return engine.hand_out(), Message(); });
      if (!answer.header.contains("error")) continue;
      failure = answer;
      link.event("failed", std::move(answer));
      continue;
    }
    if (command->header.value("command", "") == "shutdown") break;
    link.answer(failure ? *failure
                        : answer_of(command->header.value("command", "?"), [&] { return engine.handle(*command); }));
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
