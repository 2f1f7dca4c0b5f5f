// A server for one user of this machine.
#include "lib/http/local/local_server.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "tests/support/report.hpp"

using namespace hexad::http;

namespace {

// `window`: bytes that the kernel keeps for us unread; 0: as many as it likes.
int connected(uint16_t port, int window = 0) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET, place.sin_port = htons(port), place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience = {.tv_sec = 60, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (window > 0) ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) return -1;
  return fd;
}

// All that the server says to these bytes.
std::string said(uint16_t port, const std::string& bytes) {
  const int fd = connected(port);
  if (fd < 0 || ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return "not connected";
  std::string text;
  char piece[4096];
  for (ssize_t count; (count = ::recv(fd, piece, sizeof piece, 0)) > 0;) text.append(piece, static_cast<size_t>(count));
  ::close(fd);
  return text;
}

std::string request(const std::string& line, const std::string& host = "localhost:1", const std::string& more = "") {
  return line + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A server on a thread, until a signal ends it.
class Served {
 public:
  explicit Served(Handler handler, std::chrono::milliseconds patience = std::chrono::seconds(10))
      : server_(0, std::move(handler), patience), thread_([this] { signal_ = server_.run(); }) {
    while (!has(said(port(), request("GET /")), "HTTP/1.1")) continue;
  }
  ~Served() {
    if (thread_.joinable()) end(SIGTERM);
  }
  uint16_t port() const { return server_.port(); }
  int end(int signal) {
    ::kill(::getpid(), signal);
    thread_.join();
    return signal_;
  }

 private:
  LocalServer server_;
  int signal_ = 0;
  std::thread thread_;
};

Answer answer_of(const Request& request) {
  if (request.path == "/none") return {.status = 404, .body = "none\n"};
  if (request.known == "7") return {.status = 304, .version = "7"};
  return {.type = "text/html", .body = "at " + request.path, .version = "7"};
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // answers that must come in time

TEST_CASE("a page, its type and version, and nothing that it may do elsewhere") {
  const Served served(answer_of);
  const std::string page = said(served.port(), request("GET /a?b=c"));
  CHECK(page.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(page.ends_with("\r\n\r\nat /a"));
  for (const char* field :
       {"Content-Type: text/html\r\n", "ETag: \"7\"\r\n", "Content-Length: 5\r\n", "Connection: close\r\n",
        "Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n", "X-Frame-Options: DENY\r\n"})
    CHECK_MESSAGE(has(page, field), field);
  CHECK_FALSE(has(page, "Access-Control"));
  CHECK(said(served.port(), request("HEAD /a")).ends_with("\r\n\r\n"));
  CHECK(said(served.port(), request("GET /none")).starts_with("HTTP/1.1 404 "));
  CHECK(said(served.port(), request("GET /a", "localhost", "If-None-Match: \"7\"\r\n")).starts_with("HTTP/1.1 304 "));
}

TEST_CASE("only requests for this machine are answered, by whatever port") {
  const Served served(answer_of);
  for (const char* host : {"localhost", "localhost:9000", "127.0.0.1", "127.0.0.1:80"})
    CHECK_MESSAGE(said(served.port(), request("GET /", host)).starts_with("HTTP/1.1 200 "), host);
  for (const char* host : {"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""}) {
    const std::string page = said(served.port(), request("GET /", host));
    CHECK_MESSAGE(page.starts_with("HTTP/1.1 403 "), host);
    CHECK_MESSAGE(has(page, "wanted localhost or 127.0.0.1"), host);
    CHECK_MESSAGE(!has(page, "at /"), host);
  }
  CHECK(said(served.port(), "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 403 "));
}

TEST_CASE("another user of this machine is refused") {
  if (::geteuid() != 0) return test_report::skipped("only root can be another user");
  const Served served(answer_of);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setgid(65534) == 0 && ::setuid(65534) == 0;
    const std::string page = other ? said(served.port(), request("GET /")) : "";
    ::_exit(page.starts_with("HTTP/1.1 403 ") && has(page, "this is another user's page") ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("what only reads may be asked for; what is no request is not answered") {
  const Served served(answer_of);
  CHECK(said(served.port(), request("DELETE /")).starts_with("HTTP/1.1 405 "));
  CHECK(said(served.port(), "nonsense\r\n\r\n").empty());
  CHECK(said(served.port(), request("GET /", "localhost", "X: " + std::string(20000, 'x') + "\r\n")).empty());
  CHECK(said(served.port(), request("GET /")).starts_with("HTTP/1.1 200 "));
}

TEST_CASE("an answer that cannot be made is 503 with the reason, and the server goes on") {
  const Served served([](const Request& request) {
    if (request.path == "/broken") throw std::runtime_error("the disk has gone");
    return answer_of(request);
  });
  const std::string page = said(served.port(), request("GET /broken"));
  CHECK(page.starts_with("HTTP/1.1 503 "));
  CHECK(page.ends_with("\r\n\r\nthe disk has gone\n"));
  CHECK(said(served.port(), request("GET /")).starts_with("HTTP/1.1 200 "));
}

TEST_CASE("whoever takes an answer slowly gets all of it; who takes none of it does not") {
  constexpr std::chrono::milliseconds kPatience(1000), kPause(60);
  constexpr int kPiece = 64 << 10;
  const std::string body(40 * kPiece, 'x');  // 2.4 s
  const Served served([&](const Request&) { return Answer{.body = body}; }, kPatience);
  const auto asking = [&] {
    const int fd = connected(served.port(), kPiece);
    const std::string line = request("GET /");
    REQUIRE(::send(fd, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size()));
    return fd;
  };
  const auto taken = [](int fd, std::chrono::milliseconds pause) {
    std::string text, piece(kPiece, 0);
    for (ssize_t count; (count = ::recv(fd, piece.data(), piece.size(), MSG_WAITALL)) > 0;) {
      text.append(piece, 0, static_cast<size_t>(count));
      std::this_thread::sleep_for(pause);
    }
    ::close(fd);
    return text;
  };
  const int idle = asking(), slow = asking();
  CHECK(taken(slow, kPause).ends_with("\r\n\r\n" + body));
  CHECK(taken(idle, {}).size() < body.size());
}

TEST_CASE("connections that say nothing end, and keep nobody out for good") {
  const Served served(answer_of, std::chrono::seconds(1));
  std::vector<int> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(connected(served.port()));
  char byte = 0;
  for (const int fd : silent) {
    CHECK(::recv(fd, &byte, 1, 0) <= 0);  // when patience is at its end, all at once
    ::close(fd);
  }
  CHECK(said(served.port(), request("GET /")).starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a signal ends it and is told; a port that is taken is an error with its number") {
  for (const int signal : {SIGINT, SIGTERM}) CHECK(Served(answer_of).end(signal) == signal);
  const LocalServer first(0, answer_of);
  std::string what;
  try {
    const LocalServer second(first.port(), answer_of);
  } catch (const std::system_error& error) {
    what = error.what();
  }
  CHECK(what == "127.0.0.1:" + std::to_string(first.port()) + ": Address already in use");
}

TEST_SUITE_END();
