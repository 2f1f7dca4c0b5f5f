#include "core/cluster/socket.hpp"

#include <doctest/doctest.h>

using namespace hexad;
using cluster::Message;
using cluster::Socket;

constexpr int kPatienceMs = 300'000;  // other programs may have the cores

TEST_CASE("a peer with the run's secret is heard and answered") {
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  Socket client = Socket::connect(server.endpoint(), "7", keys.public_key);
  Message hello;
  hello.header["event"] = "hello";
  hello.tensors.push_back(data::Tensor::of<float>({1, 2, 3}));
  client.send(hello);
  auto received = server.receive(kPatienceMs);
  REQUIRE(received);
  CHECK(received->peer == "7");
  CHECK(received->message.tensors.at(0) == hello.tensors[0]);
  server.send(Message{{{"command", "train"}}, {}}, "7");
  auto answer = client.receive(kPatienceMs);
  REQUIRE(answer);
  CHECK(answer->message.header.at("command") == "train");
}

TEST_CASE("a stranger without the secret is not heard") {
  const cluster::KeyPair keys = cluster::make_keys();
  Socket server = Socket::listen("127.0.0.1", keys);
  Socket stranger = Socket::connect(server.endpoint(), "0", cluster::make_keys().public_key);
  stranger.send(Message{{{"event", "hello"}}, {}});
  CHECK_FALSE(server.receive(500));
}
