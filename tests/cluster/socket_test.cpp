#include "core/cluster/message/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "tests/support/said.hpp"

using namespace hexad;
using cluster::Message;
using cluster::Socket;

namespace {

constexpr int kPatienceMs = 300'000;  // other programs may have the cores

// Whether the listener, which hears nothing meanwhile, comes to have dropped so many.
bool drops(Socket& server, int64_t count) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (server.dropped() < count && std::chrono::steady_clock::now() < until) {
    if (server.receive(50)) return false;
  }
  return server.dropped() >= count;
}

// A TCP connection to the listener that sends these bytes and is closed.
void knock(const Socket& server, const std::string& bytes) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port =
      htons(static_cast<uint16_t>(std::stoi(server.endpoint().substr(server.endpoint().rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

Message named(const std::string& command, const std::string& event) {
  Message message;
  message.command = command, message.event = event;
  return message;
}

}  // namespace

TEST_CASE("a peer with the run's secret is heard and answered") {
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  Socket client = Socket::connect(server.endpoint(), "7", keys.public_key);
  Message hello;
  hello.event = "hello";
  hello.tensors.push_back(data::Tensor::of<float>({1, 2, 3}));
  client.send(hello);
  auto received = server.receive(kPatienceMs);
  REQUIRE(received);
  CHECK(received->peer == "7");
  CHECK(received->message.tensors.at(0) == hello.tensors[0]);
  server.send(named("train", ""), "7");
  auto answer = client.receive(kPatienceMs);
  REQUIRE(answer);
  CHECK(answer->message.command == "train");
}

TEST_CASE("a stranger without the secret is not heard, but counted and told of") {
  const test_support::Log log;
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  {
    Socket stranger = Socket::connect(server.endpoint(), "0", cluster::make_keys().public_key);
    stranger.send(named("", "hello"));
    CHECK(drops(server, 1));
    CHECK_FALSE(server.receive(500));
  }
  SAYS(log.text(), server.endpoint() + ": dropped ");
  SAYS(log.text(), " connections that did not show the run's secret, and 0 malformed messages");
}

TEST_CASE("whoever connects and does not shake hands is counted, and told of in one line") {
  const test_support::Log log;
  const cluster::KeyPair keys = cluster::make_keys();
  {
    Socket server = Socket::listen("127.0.0.1", keys);
    knock(server, "");
    REQUIRE(drops(server, 1));
    knock(server, "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a scanner of ports, or a lost browser\r\n\r\n");
    REQUIRE(drops(server, 2));
    knock(server, "");
    REQUIRE(drops(server, 3));
    SAYS(log.text(), "dropped 1 connections");
    CHECK(log.text().find("dropped 2 connections") == std::string::npos);
    // Those who have the secret are heard all the same, and not counted.
    Socket client = Socket::connect(server.endpoint(), "7", keys.public_key);
    client.send(named("", "hello"));
    CHECK(server.receive(kPatienceMs));
    { const Socket gone = std::move(client); }
    CHECK_FALSE(server.receive(500));
    CHECK_FALSE(server.receive(0));
    CHECK(server.dropped() == 3);
  }
  SAYS(log.text(), "dropped 3 connections");  // at the end, what came since
}

TEST_CASE("many strangers at a listener that is busy, or is gone, stop nobody else") {
  constexpr int64_t kMany = 800;  // three events each: more than libzmq queues by itself
  const test_support::Log log;
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  for (int64_t i = 0; i < kMany; ++i) knock(server, "");
  Socket client = Socket::connect(server.endpoint(), "7", keys.public_key);
  client.send(named("", "hello"));
  CHECK(server.receive(kPatienceMs));
  CHECK(drops(server, kMany));
  // Its connections end after it: libzmq has nobody to tell.
  for (int i = 0; i < 20; ++i) {
    std::optional<Socket> passing = Socket::listen("127.0.0.1", keys);
    Socket peer = Socket::connect(passing->endpoint(), "7", keys.public_key);
    peer.send(named("", "hello"));
    CHECK(passing->receive(kPatienceMs));
    knock(*passing, "");
    passing.reset();
  }
  Socket last = Socket::listen("127.0.0.1", keys);
  Socket peer = Socket::connect(last.endpoint(), "7", keys.public_key);
  peer.send(named("", "hello"));
  CHECK(last.receive(kPatienceMs));
}
