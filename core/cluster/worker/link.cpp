#include "core/cluster/worker/link.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "core/plugin/crash_report.hpp"

namespace hexad::cluster {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kHeartbeat = std::chrono::seconds(1);

std::string host_name() {
  char name[256] = "?";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

WorkerLink::WorkerLink(const Bootstrap& bootstrap) : WorkerLink(bootstrap, Socket::pair()) {}

WorkerLink::WorkerLink(const Bootstrap& bootstrap, std::pair<Socket, Socket> ends)
    : main_end_(std::move(ends.first)),
      thread_([this, bootstrap, inner = std::move(ends.second)]() mutable { serve(bootstrap, std::move(inner)); }) {}

WorkerLink::~WorkerLink() {
  closing_ = true;
  thread_.join();
}

Message WorkerLink::next_command() {
  while (true) {
    if (auto received = main_end_.receive(-1)) {
      cancelled_ = false;
      return std::move(received->message);
    }
  }
}

std::optional<Message> WorkerLink::next_command(int timeout_ms) {
  auto received = main_end_.receive(timeout_ms);
  if (!received) return std::nullopt;
  cancelled_ = false;
  return std::move(received->message);
}

void WorkerLink::serve(Bootstrap bootstrap, Socket inner) {
  const bool is_launched = bootstrap.local_rank >= 0;
  Socket outer = Socket::connect(bootstrap.endpoint, std::to_string(bootstrap.rank), bootstrap.server_key, is_launched);
  outer.send(protocol::to_message(protocol::Hello{
      .version = protocol::kVersion, .host = host_name(), .pid = ::getpid(), .reached = bootstrap.controller}));
  auto next_heartbeat = Clock::now() + kHeartbeat;
  while (true) {
    if (is_launched && outer.lost_peer()) {
      std::fprintf(stderr, "hexad: rank %d has lost the first process (%s), and ends\n", bootstrap.rank,
                   bootstrap.endpoint.c_str());
      ::_exit(4);
    }
    Socket::wait_any({&outer, &inner}, 100);
    while (auto received = outer.receive(0)) {
      if (received->message.command == protocol::name_of<protocol::Cancel>()) {
        cancelled_ = true;
      } else {
        inner.send(received->message);
      }
    }
    while (auto received = inner.receive(0)) outer.send(received->message);
    if (Clock::now() >= next_heartbeat) {
      outer.send(protocol::to_message(protocol::Heartbeat{.inside = plugin::longest_call()}));
      next_heartbeat = Clock::now() + kHeartbeat;
    }
    if (closing_) {
      while (auto received = inner.receive(0)) outer.send(received->message);
      return;
    }
  }
}

}  // namespace hexad::cluster
