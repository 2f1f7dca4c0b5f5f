// What a rank has: a card, or a share of the host.
#include "app/plan/room.hpp"

#include "tests/support/toy/toy.hpp"

using namespace hexad::plan;
using hexad::yaml::Node;

namespace {

Node cluster(const std::string& device, int64_t ranks) {
  Node root(Node::Map{});
  root.set("cluster.device", Node(Node::Value(device)));
  root.set("cluster.gpus_per_node", Node(Node::Value(ranks)));
  return root;
}

}  // namespace

TEST_CASE("ranks on CPUs share the host's memory, or what a control group leaves of it") {
  const toy::TempDir root;
  root.write("proc/meminfo", "MemTotal:       33554432 kB\nMemAvailable:   1024 kB\n");
  CHECK(room_of(cluster("cpu", 1), root.path(), nullptr).what == "this host has 32.0 GiB");
  const Room four = room_of(cluster("cpu", 4), root.path(), nullptr);
  CHECK(four.bytes == int64_t{8} << 30);
  CHECK_FALSE(four.on_cards);
  CHECK(four.what == "each of 4 ranks has 8.0 GiB of this host's 32.0 GiB");
  root.write("proc/self/cgroup", "0::/job\n");
  root.write("sys/fs/cgroup/job/memory.max", fmt::format("{}\n", int64_t{2} << 30));
  root.write("sys/fs/cgroup/job/memory.current", "0\n");
  CHECK(room_of(cluster("cpu", 1), root.path(), nullptr).bytes == int64_t{2} << 30);
  const toy::TempDir nothing;
  CHECK_FALSE(room_of(cluster("cpu", 1), nothing.path(), nullptr).bytes);
}

TEST_CASE("ranks on cards have the memory of the smallest of as many cards, the largest ones") {
  hexad::doctor::Driver driver;
  driver.cards = {{.name = "large", .memory = uint64_t{80} << 30}, {.name = "small", .memory = uint64_t{24} << 30}};
  const Room room = room_of(cluster("cuda", 2), "/", &driver);
  CHECK(room.bytes == int64_t{24} << 30);
  CHECK(room.on_cards);
  CHECK(room.what == "a card has 24.0 GiB");
  CHECK(room_of(cluster("cuda", 1), "/", &driver).bytes == int64_t{80} << 30);
  CHECK(room_of(cluster("cuda", 8), "/", &driver).bytes == int64_t{24} << 30);
  driver.cards = {{.name = "cut", .memory = uint64_t{80} << 30, .mig = true}};
  CHECK(room_of(cluster("cuda", 1), "/", &driver).what == "there is no card here whose memory is known");
}

TEST_CASE("sizes are read and written") {
  CHECK(bytes_of_text("80GiB") == int64_t{80} << 30);
  CHECK(bytes_of_text("24 GB") == 24'000'000'000);
  CHECK(bytes_of_text("1.5tib") == int64_t{3} << 39);
  CHECK(bytes_of_text("640MiB") == int64_t{640} << 20);
  CHECK(bytes_of_text("1000") == 1000);
  for (const char* text : {"", "GiB", "-1GiB", "80 cards", "nan", "1e30", "0"}) CHECK_FALSE(bytes_of_text(text));
  CHECK(bytes_text(int64_t{3} << 29) == "1.5 GiB");
  CHECK(bytes_text(512 << 20) == "512.0 MiB");
  CHECK(bytes_text(2048) == "2.0 KiB");
  CHECK(room_elsewhere(cluster("auto", 1), int64_t{80} << 30).on_cards);
  CHECK_FALSE(room_elsewhere(cluster("cpu", 1), 1 << 30).on_cards);
}
