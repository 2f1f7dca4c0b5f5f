// A small HTTP/1.1 server on 127.0.0.1, a thread a connection: enough to stand in for an engine where there is none.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hexad::bridge::stand_in {

struct Request {
  std::string method, path;  // with its query
  std::string key;           // of "Authorization: Bearer"
  std::string body;
};

// The client has gone.
struct Gone : std::runtime_error {
  Gone() : std::runtime_error("the client has gone") {}
};

class Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}

  // Throw Gone.
  void send(std::string_view bytes) const;
  void reply(int status, const std::string& body) const;
  void begin_events() const;
  void event(const std::string& data) const;
  void end_events() const;
  void check_alive() const;
  // The client sees a reset when it is closed.
  void reset_at_close() const;

  // The next request; throws Gone when there is none, or none that can be read.
  Request read();

 private:
  void receive();

  int socket_;
  std::string buffer_;
};

// Serves until the process ends. Throws std::runtime_error if it cannot listen.
[[noreturn]] void serve(int port, const std::function<void(const Connection&, const Request&)>& handle);

}  // namespace hexad::bridge::stand_in
