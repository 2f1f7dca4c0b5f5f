// What those who have not shown the run's secret cost a listener, and that the others are heard all the same.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <thread>

#include "core/cluster/message/socket.hpp"
#include "tests/support/listening.hpp"
#include "tests/support/said.hpp"

using namespace hexad;
using cluster::Message;
using cluster::Socket;
using test_support::Idlers;
using test_support::open_descriptors;

namespace {

constexpr int kPatienceMs = 300'000;  // other programs may have the cores

int port_of(const Socket& server) { return std::stoi(server.endpoint().substr(server.endpoint().rfind(':') + 1)); }

Message hello() {
  Message message;
  message.event = "hello";
  return message;
}

// Hears nothing for so long.
bool is_silent(Socket& server, int ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < until)
    if (server.receive(50)) return false;
  return true;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // what waits, and for how long

TEST_CASE("a crowd of idle strangers gets few connections, and keeps no peer out for good") {
  constexpr int kBatches = 30, kBatch = 20, kMostAtOnce = 300;
  const test_support::Log log;
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  const size_t before = open_descriptors();
  std::vector<std::unique_ptr<Idlers>> crowd;
  std::thread coming([&] {
    for (int i = 0; i < kBatches; ++i) {
      crowd.push_back(std::make_unique<Idlers>(port_of(server), kBatch));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  CHECK(is_silent(server, 3000));
  coming.join();
  size_t theirs = 0;
  for (const auto& each : crowd) theirs += each->size();
  REQUIRE(theirs == kBatches * kBatch);
  CHECK(open_descriptors() - before - theirs < kMostAtOnce);  // 64, and who came before the door was shut
  Socket client = Socket::connect(server.endpoint(), "7", keys.public_key);  // waits at the door with them
  client.send(hello());
  crowd.clear();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  std::optional<Socket::Received> received;
  while (!received && std::chrono::steady_clock::now() < until) received = server.receive(200);
  REQUIRE(received);
  CHECK(received->peer == "7");
  SAYS(log.text(), " connections that did not show the run's secret");
}

TEST_CASE("whoever says nothing for ten seconds is dropped") {
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  const Idlers idlers(port_of(server), 5);
  const auto began = std::chrono::steady_clock::now();
  while (server.dropped() < 5 && std::chrono::steady_clock::now() - began < std::chrono::seconds(25))
    CHECK_FALSE(server.receive(100));
  CHECK(server.dropped() == 5);
}

TEST_CASE("when all peers are there nobody else can connect, and they go on") {
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  Socket client = Socket::connect(server.endpoint(), "7", keys.public_key);
  client.send(hello());
  REQUIRE(server.receive(kPatienceMs));
  server.refuse_newcomers();
  const size_t before = open_descriptors();
  const Idlers idlers(port_of(server), 100);
  Socket late = Socket::connect(server.endpoint(), "8", keys.public_key);
  late.send(hello());
  CHECK(is_silent(server, 2000));
  CHECK(idlers.let_in() == 0);
  CHECK(open_descriptors() - before < 100 + 10);  // their own ends
  client.send(hello());
  CHECK(server.receive(kPatienceMs));
  server.send(hello(), "7");
  CHECK(client.receive(kPatienceMs));
}

TEST_CASE("a peer that comes while no descriptor is free waits, and is heard when there is one") {
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  CHECK(is_silent(server, 1));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit few = {std::min<rlim_t>(limit.rlim_cur, 400), limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<int> taken;
  for (int round = 0; round < 5; ++round) {  // libzmq's own thread may still be closing what earlier cases had
    for (int fd = 0; (fd = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0;) taken.push_back(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  REQUIRE(taken.size() > 2);
  for (int i = 0; i < 2; ++i) ::close(taken.back()), taken.pop_back();  // the client's own
  Socket client = Socket::connect(server.endpoint(), "7", keys.public_key);
  client.send(hello());
  const bool was_silent = is_silent(server, 1000);
  for (const int fd : taken) ::close(fd);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  REQUIRE(was_silent);
  CHECK(server.receive(kPatienceMs));
}

TEST_SUITE_END();
