// The control plane's sockets: ZeroMQ with CURVE, so that only this run's processes can speak.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/cluster/message/message.hpp"

namespace hexad::cluster {

// A CURVE key pair in Z85. The server's public key is the run's secret: whoever does not hold it cannot shake hands.
struct KeyPair {
  std::string public_key, secret_key;
};
KeyPair make_keys();

// One ZeroMQ socket and the context it lives in. Used by one thread. Throws Error(worker).
class Socket {
 public:
  // Listens on a free TCP port of `interface` ("127.0.0.1") as a router: peers are distinguished by their names.
  // Whoever connects has ten seconds to show the secret; while many have not, newcomers wait outside.
  static Socket listen(const std::string& interface, const KeyPair& keys);
  // All peers of this listener are there: from now on nobody else can connect.
  void refuse_newcomers();
  // Connects to a listener as `name`. `watched`: lost_peer() tells when the listener has ended or can no longer be
  // reached (within half a minute).
  static Socket connect(const std::string& endpoint, const std::string& name, const std::string& server_key,
                        bool watched = false);
  // The two ends of a channel between two threads of this process.
  static std::pair<Socket, Socket> pair();

  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  const std::string& endpoint() const;

  // Queues a message; never blocks. `peer` names the receiver of a listener and is empty otherwise.
  void send(const Message& message, const std::string& peer = "");

  struct Received {
    std::string peer;
    Message message;
  };
  // Waits up to timeout_ms for a message (-1: for ever). Malformed messages are dropped and counted; so are, at a
  // listener, the connections of strangers, as far as they ended before this call. A warning says when the count grows.
  std::optional<Received> receive(int timeout_ms);
  int64_t dropped() const;

  bool lost_peer();

  // Waits until one of several sockets has a message or the time is over.
  static void wait_any(std::initializer_list<Socket*> sockets, int timeout_ms);

 private:
  struct State;
  static void watch(State& state);
  explicit Socket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hexad::cluster
