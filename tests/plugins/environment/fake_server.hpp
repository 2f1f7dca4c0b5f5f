// A server of HTTP/1.1 in this process that replies as a test says.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fake_server {

struct Request {
  std::string head, body;  // the head with its request line
};

struct Reply {
  int status = 200;
  std::string body;
  std::string headers = {};  // each with its line end
  double wait_s = 0;         // before it
  bool hang_up = false;      // instead of it
};

class Server {
 public:
  using Handler = std::function<Reply(const Request& request, int number)>;  // from 0, in order of arrival

  explicit Server(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const place = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, place, size) != 0 || ::listen(listener_, 128) != 0 ||
        ::getsockname(listener_, place, &size) != 0)
      throw std::runtime_error("no listening socket");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::jthread([this] { accept_all(); });
  }
  ~Server() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    {
      const std::scoped_lock lock(mutex_);
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    threads_.clear();
    for (const int socket : sockets_) ::close(socket);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string url(const std::string& path = "/") const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  std::vector<Request> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }
  int most_at_once() const { return most_at_once_; }

 private:
  void accept_all() {
    while (!stopping_) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      const std::scoped_lock lock(mutex_);
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string arrived;
    for (Request request; receive(socket, arrived, request);) {
      int number = 0;
      {
        const std::scoped_lock lock(mutex_);
        number = static_cast<int>(requests_.size());
        requests_.push_back(request);
        most_at_once_ = std::max(most_at_once_.load(), ++at_once_);
      }
      const Reply reply = handler_(request, number);
      const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(reply.wait_s);
      while (!stopping_ && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      {
        const std::scoped_lock lock(mutex_);
        --at_once_;
      }
      if (reply.hang_up) break;
      const std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " X\r\n" + reply.headers +
                               "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n" + reply.body;
      ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    }
    ::shutdown(socket, SHUT_RDWR);
  }

  static bool receive(int socket, std::string& arrived, Request& request) {
    const auto more = [&] {
      char bytes[65536];
      const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
      if (count > 0) arrived.append(bytes, static_cast<size_t>(count));
      return count > 0;
    };
    size_t head = 0;
    while ((head = arrived.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return false;
    }
    request.head = arrived.substr(0, head + 2);
    const size_t field = request.head.find("Content-Length: ");
    const size_t length = field == std::string::npos ? 0 : std::stoul(request.head.substr(field + 16));
    while (arrived.size() < head + 4 + length) {
      if (!more()) return false;
    }
    request.body = arrived.substr(head + 4, length);
    arrived.erase(0, head + 4 + length);
    return true;
  }

  Handler handler_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<int> sockets_;
  int at_once_ = 0;
  std::atomic<int> most_at_once_ = 0;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace fake_server
