// An HTTP server for a handler that may break off in any way: a thread a connection, on 127.0.0.1.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace fake_http {

struct Gone {};  // thrown where the connection is no more, or is to be closed

// Every function throws Gone if the client has gone.
class Connection {
 public:
  explicit Connection(int descriptor) : descriptor_(descriptor) {}

  void receive(std::string& buffer) const {
    char bytes[16384];
    const ssize_t count = ::recv(descriptor_, bytes, sizeof bytes, 0);
    if (count <= 0) throw Gone{};
    buffer.append(bytes, static_cast<size_t>(count));
  }
  void send_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) throw Gone{};
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  void reply(int status, const std::string& body) const {
    send_all("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\nContent-Length: " +
             std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void begin_stream(int status = 200) const {
    send_all("HTTP/1.1 " + std::to_string(status) +
             " X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  void chunk(const std::string& data) const {  // "": the stream's end
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", data.size());
    send_all(size + data + "\r\n");
  }
  void pass_time(int ms) const {
    pollfd wait{descriptor_, POLLIN, 0};
    char byte = 0;
    if (::poll(&wait, 1, ms) > 0 && ::recv(descriptor_, &byte, 1, MSG_PEEK) <= 0) throw Gone{};
  }
  // Its close will be a reset.
  void reset_at_close() const {
    const linger now{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

 private:
  int descriptor_;
};

struct HttpMessage {
  std::string method, path, key, body;  // key: of "Authorization: Bearer"
};

class HttpListener {
 public:
  // Runs on the connection's thread, once a request.
  using Handler = std::function<void(const Connection&, const HttpMessage&)>;

  // port 0: any.
  HttpListener(int port, Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 || ::listen(listener_, 1024) < 0)
      throw std::runtime_error("the fake server cannot listen");
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~HttpListener() { stop(); }
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  int port() const { return port_; }

  // As if it were killed: every connection is reset, and nobody is answered any more. Handlers may still run.
  void reset_all() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int connection : connections_) {
      Connection(connection).reset_at_close();
      ::shutdown(connection, SHUT_RDWR);
    }
  }
  // The same, and waits for the handlers.
  void stop() {
    reset_all();
    if (!acceptor_.joinable()) return;
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
  }

 private:
  void accept_all() {
    while (!stopping_) {
      pollfd wait{listener_, POLLIN, 0};
      if (::poll(&wait, 1, 20) <= 0) continue;
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      const int yes = 1;
      ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      const std::lock_guard lock(mutex_);
      connections_.insert(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int descriptor) {
    const Connection connection(descriptor);
    try {
      std::string buffer;
      while (!stopping_) handler_(connection, next_message(connection, buffer));
    } catch (const Gone&) {
    }
    const std::lock_guard lock(mutex_);
    connections_.erase(descriptor);
    ::close(descriptor);
  }

  static HttpMessage next_message(const Connection& connection, std::string& buffer) {
    size_t head = 0;
    while ((head = buffer.find("\r\n\r\n")) == std::string::npos) connection.receive(buffer);
    const std::string header = buffer.substr(0, head);
    size_t length = 0;
    if (const size_t at = header.find("Content-Length: "); at != std::string::npos)
      length = std::stoul(header.substr(at + 16));
    while (buffer.size() < head + 4 + length) connection.receive(buffer);
    HttpMessage message;
    message.body = buffer.substr(head + 4, length);
    buffer.erase(0, head + 4 + length);
    const size_t space = header.find(' '), end = header.find(' ', space + 1);
    message.method = header.substr(0, space), message.path = header.substr(space + 1, end - space - 1);
    if (const size_t at = header.find("Authorization: Bearer "); at != std::string::npos)
      message.key = header.substr(at + 22, header.find("\r\n", at) - at - 22);
    return message;
  }

  Handler handler_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // of what follows
  std::set<int> connections_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace fake_http
