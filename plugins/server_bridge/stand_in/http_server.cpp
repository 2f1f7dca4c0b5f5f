#include "plugins/server_bridge/stand_in/http_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <thread>

namespace hexad::bridge::stand_in {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // of a request

// The value of a header field, "" if it is not there. The bridges' client writes names as curl does.
std::string field(const std::string& header, std::string_view name) {
  const size_t at = header.find(std::string(name) + ": ");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return header.substr(begin, header.find("\r\n", begin) - begin);
}

int listen_on(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 || ::listen(socket, 1024) < 0)
    throw std::runtime_error("cannot listen on port " + std::to_string(port) + ": " + std::strerror(errno));
  return socket;
}

}  // namespace

void Connection::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) throw Gone();
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void Connection::receive() {
  char bytes[16384];
  const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
  if (count <= 0 || buffer_.size() > kMostBytes) throw Gone();
  buffer_.append(bytes, static_cast<size_t>(count));
}

void Connection::reply(int status, const std::string& body) const {
  send("HTTP/1.1 " + std::to_string(status) +
       " X\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

void Connection::begin_events() const {
  send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void Connection::event(const std::string& data) const {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size() + 8);
  send(size + ("data: " + data) + "\n\n\r\n");
}

void Connection::end_events() const {
  event("[DONE]");
  send("0\r\n\r\n");
}

void Connection::check_alive() const {
  pollfd wait{socket_, POLLIN, 0};
  char byte = 0;
  if (::poll(&wait, 1, 0) > 0 && ::recv(socket_, &byte, 1, MSG_PEEK) <= 0) throw Gone();
}

void Connection::reset_at_close() const {
  const linger now{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

Request Connection::read() {
  size_t head = 0;
  while ((head = buffer_.find("\r\n\r\n")) == std::string::npos) receive();
  const std::string header = buffer_.substr(0, head + 2);
  const std::string size = field(header, "Content-Length");
  size_t length = 0;
  if (!size.empty() && std::from_chars(size.data(), size.data() + size.size(), length).ec != std::errc()) throw Gone();
  if (length > kMostBytes) throw Gone();
  while (buffer_.size() < head + 4 + length) receive();
  const size_t space = header.find(' '), end = header.find(' ', space + 1);
  Request request{header.substr(0, space), header.substr(space + 1, end - space - 1), field(header, "Authorization"),
                  buffer_.substr(head + 4, length)};
  if (request.key.starts_with("Bearer ")) request.key.erase(0, 7);
  buffer_.erase(0, head + 4 + length);
  return request;
}

void serve(int port, const std::function<void(const Connection&, const Request&)>& handle) {
  const int listener = listen_on(port);
  for (;;) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    std::thread([socket, &handle] {
      Connection connection(socket);
      try {
        for (;;) handle(connection, connection.read());
      } catch (const Gone&) {
      }
      ::close(socket);
    }).detach();
  }
}

}  // namespace hexad::bridge::stand_in
