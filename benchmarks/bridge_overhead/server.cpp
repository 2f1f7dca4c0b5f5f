#include "benchmarks/bridge_overhead/server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <memory>
#include <new>
#include <queue>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "benchmarks/bridge_overhead/work.hpp"

namespace hexad::bridge_overhead {
namespace {

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

struct Connection {
  int socket = -1;
  std::string in, out;  // not handled yet, not sent yet
  uint64_t index = 0;   // of the request that it works on
  int64_t answer = 0;   // unique among all answers
  int64_t tokens = 0, sent = 0, due_ns = 0;
};

// The number after `key`, or a default.
int64_t number_after(std::string_view text, std::string_view key, int64_t otherwise) {
  const size_t at = text.find(key);
  int64_t value = otherwise;
  if (at != std::string_view::npos) std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

// As it is sent, and how much of it is the body's.
struct Chunk {
  std::string text;
  int64_t bytes = 0;
};
Chunk chunk_of(std::string_view data) {
  return {fmt::format("{:x}\r\n{}\r\n", data.size(), data), static_cast<int64_t>(data.size())};
}

constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

class Loop {
 public:
  Loop(int listener, Board& board) : listener_(listener), board_(board), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
  }

  [[noreturn]] void run() {
    std::vector<epoll_event> events(1024);
    for (;;) {
      const int count = ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), wait(), nullptr);
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<size_t>(i)];
        if (event.data.fd == listener_) {
          accept_all();
        } else if (const auto found = connections_.find(event.data.fd); found != connections_.end()) {
          if (event.events & EPOLLOUT) flush(*found->second);
          if (event.events & ~uint32_t{EPOLLOUT}) receive(*found->second);
        }
      }
      send_due();
    }
  }

 private:
  struct Due {
    int64_t time_ns;
    int socket;
    int64_t answer;  // of the connection's: a socket's number may be another's by then
    bool operator>(const Due& other) const { return time_ns > other.time_ns; }
  };

  void watch(int socket, uint32_t events, int operation) {
    epoll_event event{};
    event.events = events;
    event.data.fd = socket;
    ::epoll_ctl(epoll_, operation, socket, &event);
  }

  const timespec* wait() {
    if (due_.empty()) return nullptr;
    const int64_t left = std::max<int64_t>(0, due_.top().time_ns - now_ns());
    wait_ = {left / 1'000'000'000, left % 1'000'000'000};
    return &wait_;
  }

  void accept_all() {
    for (int socket; (socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
      const int yes = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      connections_[socket] = std::make_unique<Connection>();
      connections_[socket]->socket = socket;
      watch(socket, EPOLLIN, EPOLL_CTL_ADD);
    }
  }

  void receive(Connection& c) {
    char bytes[65536];
    const ssize_t count = ::recv(c.socket, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      const int socket = c.socket;
      if (c.sent < c.tokens) --board_.running;
      connections_.erase(socket);
      ::close(socket);
      return;
    }
    c.in.append(bytes, static_cast<size_t>(count));
    const size_t head = c.in.find("\r\n\r\n");
    if (head == std::string::npos) return;
    const auto length = static_cast<size_t>(number_after({c.in.data(), head}, "Content-Length: ", 0));
    if (c.in.size() < head + 4 + length) return;
    answer(c, std::string_view(c.in).substr(head + 4));
    c.in.clear();  // clients do not pipeline
  }

  void answer(Connection& c, std::string_view body) {
    const auto reply = [&](std::string_view status, std::string_view text) {
      send(c, fmt::format("HTTP/1.1 {}\r\ncontent-length: {}\r\n\r\n{}", status, text.size(), text));
    };
    if (c.in.starts_with("GET /health")) return reply("200 OK", "");
    if (c.in.starts_with("GET /version")) return reply("200 OK", R"({"version":"0.24.0"})");
    const int64_t index = number_after(body, R"("token_ids":[)", -1);
    if (!c.in.starts_with("POST /inference/v1/generate"))
      return reply("404 Not Found", R"({"error":{"message":"Not Found","code":404}})");
    if (index < 0) return reply("400 Bad Request", R"({"error":{"message":"no token_ids","code":400}})");
    c.index = static_cast<uint64_t>(index), c.tokens = number_after(body, R"("max_tokens":)", 16), c.sent = 0;
    c.answer = ++answers_;
    ++board_.requests;
    board_.most_running = std::max<int64_t>(board_.most_running, ++board_.running);
    c.due_ns = now_ns();
    if (board_.pace_us == 0) return send_whole(c);
    if (board_.together > 0) return gather(c);
    start(c);
  }

  // Clocks start when all are there.
  void gather(Connection& c) {
    gathered_.push_back(c.socket);
    if (static_cast<int64_t>(gathered_.size()) < board_.together) return;
    board_.together_ns = now_ns();
    for (const int socket : gathered_) {
      if (const auto found = connections_.find(socket); found != connections_.end()) start(*found->second);
    }
    gathered_.clear();
  }

  // Each request has a phase of its own: tokens of different requests do not leave together.
  void start(Connection& c) {
    const int64_t pace = board_.pace_us * 1000;
    c.due_ns = now_ns() + static_cast<int64_t>(mixed(c.index) % static_cast<uint64_t>(pace));
    due_.push({c.due_ns, c.socket, c.answer});
  }

  void send_whole(Connection& c) {
    std::string text(kStreamHead);
    while (c.sent < c.tokens) text += next_event(c);
    finish(c, std::move(text));
  }

  // Made once for each request of a run, so that later runs measure the clients.
  const std::string& next_event(Connection& c) {
    std::vector<Chunk>& made = events_[c.index];
    for (auto i = static_cast<int64_t>(made.size()); i < c.tokens; ++i)
      made.push_back(chunk_of(event_of(c.index, i, i + 1 == c.tokens)));
    const Chunk& chunk = made[static_cast<size_t>(c.sent++)];
    board_.body_bytes += chunk.bytes;
    return chunk.text;
  }

  void finish(Connection& c, std::string text) {
    static const Chunk done = chunk_of("data: [DONE]\n\n");
    board_.body_bytes += done.bytes;
    text += done.text + "0\r\n\r\n";
    --board_.running;
    send(c, text);
    board_.late_ns += now_ns() - c.due_ns;
  }

  void send_due() {
    const int64_t now = now_ns();
    while (!due_.empty() && due_.top().time_ns <= now) {
      const Due due = due_.top();
      due_.pop();
      const auto found = connections_.find(due.socket);
      if (found == connections_.end() || found->second->answer != due.answer) continue;
      Connection& c = *found->second;
      std::string text(c.sent == 0 ? kStreamHead : "");
      text += next_event(c);
      if (c.sent == c.tokens) {
        finish(c, std::move(text));
        continue;
      }
      send(c, text);
      c.due_ns += board_.pace_us * 1000;
      due_.push({c.due_ns, c.socket, c.answer});
    }
  }

  void send(Connection& c, std::string_view bytes) {
    const ssize_t count = c.out.empty() ? ::send(c.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) : 0;
    if (count == static_cast<ssize_t>(bytes.size())) return;
    c.out += bytes.substr(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    watch(c.socket, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  }

  void flush(Connection& c) {
    const ssize_t count = ::send(c.socket, c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (count > 0) c.out.erase(0, static_cast<size_t>(count));
    if (c.out.empty()) watch(c.socket, EPOLLIN, EPOLL_CTL_MOD);
  }

  int listener_;
  Board& board_;
  int epoll_;
  timespec wait_{};
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<int> gathered_;
  std::unordered_map<uint64_t, std::vector<Chunk>> events_;  // of each request
  int64_t answers_ = 0;
};

int listen_anywhere(int& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), size) < 0 || ::listen(socket, 16384) < 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) < 0)
    throw std::runtime_error("the server cannot listen on 127.0.0.1");
  port = ntohs(address.sin_port);
  return socket;
}

}  // namespace

Server::Server() {
  void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory to share with the server");
  board_ = new (shared) Board;
  const int listener = listen_anywhere(port_);
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("the server's process cannot be started");
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Loop(listener, *board_).run();
  }
  ::close(listener);
}

Server::~Server() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  ::munmap(board_, sizeof(Board));
}

double Server::cpu_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace hexad::bridge_overhead
