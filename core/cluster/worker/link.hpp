// A worker's line to its controller: a thread that keeps it alive while the main thread works.
#pragma once
#include <atomic>
#include <optional>
#include <thread>

#include "core/cluster/message/socket.hpp"
#include "core/cluster/protocol/protocol.hpp"
#include "core/cluster/worker/worker.hpp"

namespace hexad::cluster {

// The main thread receives commands and sends answers and events; a thread of the link owns the network socket, sends
// a heartbeat every second whatever the main thread does, and hears Cancel at once. In a process that a launcher has
// started it ends the process when the connection is lost: nobody else would.
class WorkerLink {
 public:
  explicit WorkerLink(const Bootstrap& bootstrap);
  ~WorkerLink();  // sends what is still queued

  // The next command; blocks.
  Message next_command();
  // The next command if one comes within this time.
  std::optional<Message> next_command(int timeout_ms);
  void answer(const Message& message) { main_end_.send(message); }
  template <typename Event>
  void event(const Event& event) {
    main_end_.send(protocol::to_message(event));
  }

  const std::atomic<bool>& cancelled() const { return cancelled_; }

 private:
  WorkerLink(const Bootstrap& bootstrap, std::pair<Socket, Socket> ends);
  void serve(Bootstrap bootstrap, Socket inner);

  Socket main_end_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace hexad::cluster
