// HTTP requests by the thousand: what one after another, and all at once, leave behind.
#include "lib/http/client/transfers.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>

#include "tests/support/fake_http.hpp"

using namespace fake_http;
using namespace hexad::http::client;

namespace {

int64_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

template <typename Predicate>
bool soon(const Predicate& predicate) {
  for (int i = 0; i < 1000; ++i) {
    if (predicate()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Answers everything, once its gate is open, and knows what came.
class Server {
 public:
  ~Server() {
    open_gate();
    listener_.stop();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(listener_.port()); }
  void shut_gate() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void open_gate() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  void handle(const Connection& connection, const HttpMessage& message) {
    std::unique_lock lock(mutex_);
    calls_.push_back(message.method + " " + message.path + " " + message.body);
    changed_.wait(lock, [&] { return open_; });
    lock.unlock();
    connection.reply(200, "{}");
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  std::vector<std::string> calls_;
  HttpListener listener_{
      0, [this](const Connection& connection, const HttpMessage& message) { handle(connection, message); }};
};

struct Client {
  EventLoop loop;
  Transfers transfers{loop};
  StopsLoop before_transfers{loop};
  std::atomic<int> ended{0}, good{0};

  void get(const std::string& url, const std::string& method = "GET", const std::string& body = "") {
    loop.run([&] {
      HttpRequest request;
      request.method = method, request.url = url, request.body = body;
      transfers.start(std::move(request), {nullptr, [this](const HttpResult& result) {
                                             good += result.complete && result.status == 200;
                                             ++ended;
                                           }});
    });
  }
  bool wait_for(int count) {
    return soon([&] { return ended == count; });
  }
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a handle that is used again sends what its new request says") {
  Server server;
  Client client;
  client.get(server.url() + "/reset", "POST", "{}");
  REQUIRE(client.wait_for(1));
  client.get(server.url() + "/version");
  REQUIRE(client.wait_for(2));
  client.get(server.url() + "/pause", "POST", "{}");
  REQUIRE(client.wait_for(3));
  CHECK(server.calls() == std::vector<std::string>{"POST /reset {}", "GET /version ", "POST /pause {}"});
}

TEST_CASE("connections of many requests at once are used again, and closed when nobody needs them") {
  constexpr int kMany = 1500, kKept = 1024, kOthers = 50;  // files of the lanes themselves
  Server server;
  server.shut_gate();
  Client client;
  const int64_t before = open_files();
  for (int i = 0; i < kMany; ++i) client.get(server.url() + "/health");
  CHECK(soon([&] { return server.calls().size() == kMany; }));
  server.open_gate();
  REQUIRE(client.wait_for(kMany));
  CHECK(client.good == kMany);
  const int64_t most = open_files();
  CHECK(most >= before + 2 * kMany);  // both ends are this process's
  client.get(server.url() + "/health");
  REQUIRE(client.wait_for(kMany + 1));
  CHECK(open_files() <= most);
  CHECK(soon([&] { return open_files() <= before + 2 * kKept + kOthers; }));
  client.get(server.url() + "/health");
  REQUIRE(client.wait_for(kMany + 2));
  CHECK(client.good == kMany + 2);
}

TEST_CASE("an answer that is larger than any is given up, and told of") {
  HttpListener server(0, [](const Connection& connection, const HttpMessage&) {
    connection.begin_stream();
    for (const std::string part(size_t{1} << 20, 'x');;) connection.chunk(part);  // until nobody reads
  });
  Client client;
  std::string trouble;
  client.loop.run([&] {
    HttpRequest request;
    request.url = "http://127.0.0.1:" + std::to_string(server.port()) + "/version";
    ask(client.transfers, std::move(request), [&](const Answer& answer) {
      trouble = answer.trouble();
      client.good += answer.ok();
      ++client.ended;
    });
  });
  REQUIRE(client.wait_for(1));
  CHECK(trouble == "it answered more than 16 MiB");
  CHECK(client.good == 0);
  server.reset_all();
}

TEST_SUITE_END();
