// Frames over a socket: whole, in order, with their descriptors; what is no frame, and what does not come in time.
#include "lib/ipc/channel.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "lib/ipc/packet.hpp"
#include "lib/ipc/shared_memory.hpp"

using namespace hexad::ipc;

namespace {

struct Pair {
  int ends[2];
  Pair() { REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0); }
};

int64_t in_ms(int64_t ms) { return now_ns() + ms * 1'000'000; }

}  // namespace

TEST_CASE("frames of any size arrive whole and in order") {
  const Pair pair;
  Channel sender(pair.ends[0], false), receiver(pair.ends[1], false);
  std::mt19937 random(7);
  std::vector<std::string> sent;
  for (const size_t size : {0, 1, 4095, 4096, 4097, 1 << 20}) {
    sent.emplace_back(size, '\0');
    for (char& c : sent.back()) c = static_cast<char>(random());
  }
  std::jthread from([&] {
    for (uint32_t kind = 1; const std::string& bytes : sent) sender.send(kind++, bytes);
  });
  for (uint32_t kind = 1; const std::string& bytes : sent) {
    const std::optional<Frame> frame = receiver.receive(in_ms(10'000), in_ms(10'000));
    REQUIRE(frame);
    CHECK(frame->kind == kind++);
    CHECK(frame->bytes == bytes);
  }
}

TEST_CASE("descriptors come with their frame, and only to those who take them") {
  for (const bool takes : {true, false}) {
    CAPTURE(takes);
    const Pair pair;
    Channel sender(pair.ends[0], false), receiver(pair.ends[1], takes);
    SharedMemory memory = SharedMemory::make(4096);
    memory.data()[17] = std::byte{42};
    sender.send(3, "memory", {memory.descriptor()}, kForever);
    const std::optional<Frame> frame = receiver.receive(in_ms(10'000), in_ms(10'000));
    REQUIRE(frame);
    REQUIRE(frame->descriptors.size() == (takes ? 1 : 0));
    if (!takes) continue;
    const SharedMemory seen = SharedMemory::adopt(frame->descriptors[0]);
    CHECK(seen.size() == 4096);
    CHECK(seen.data()[17] == std::byte{42});
    CHECK(::ftruncate(seen.descriptor(), 0) != 0);  // sealed: no page goes away under the other's hands
  }
}

TEST_CASE("what is no frame, what is unfinished, what never begins and what is closed are told apart") {
  const Pair pair;
  Channel receiver(pair.ends[1], false);
  CHECK(!receiver.receive(in_ms(20)));  // nothing began
  REQUIRE(::write(pair.ends[0], "HEX1", 4) == 4);
  CHECK_THROWS_AS(receiver.receive(in_ms(1000), in_ms(20)), TimedOut);
  REQUIRE(::write(pair.ends[0], "................", 16) == 16);
  CHECK_THROWS_AS(receiver.receive(in_ms(1000), in_ms(1000)), BadPacket);  // a size of more than 4 GiB
  ::close(pair.ends[0]);

  const Pair other;
  Channel alone(other.ends[1], false);
  REQUIRE(::write(other.ends[0], "GET / HTTP/1.1\r\n\r\n", 18) == 18);
  CHECK_THROWS_AS(alone.receive(in_ms(1000), in_ms(1000)), BadPacket);
  ::close(other.ends[0]);

  const Pair closed;
  Channel last(closed.ends[1], false);
  ::close(closed.ends[0]);
  CHECK_THROWS_AS(last.receive(in_ms(1000), in_ms(1000)), Closed);
  CHECK_THROWS_AS(last.send(1, std::string(1 << 20, 'x'), in_ms(1000)), Closed);
}

TEST_CASE("a peer that does not read is waited for until the deadline") {
  const Pair pair;
  Channel sender(pair.ends[0], false);
  CHECK_THROWS_AS(sender.send(1, std::string(8 << 20, 'x'), in_ms(30)), TimedOut);
  ::close(pair.ends[1]);
}

TEST_CASE("a packet gives back what was put in, and never reads past its end") {
  Writer out;
  out.put(int32_t{-5});
  out.text("naïve");
  out.optional_text(nullptr);
  const double values[] = {1.5, -2};
  out.array(values, 2);
  Reader in(out.bytes());
  CHECK(in.get<int32_t>() == -5);
  CHECK(in.text() == "naïve");
  CHECK(!in.has());
  CHECK(in.array<double>() == std::vector<double>{1.5, -2});
  CHECK(in.rest().empty());
  CHECK_THROWS_AS(in.get<char>(), BadPacket);

  Writer large;
  large.put(int64_t{1} << 61);
  CHECK_THROWS_AS(Reader(large.bytes()).array<double>(), BadPacket);
  CHECK_THROWS_AS(Reader(large.bytes()).text(), BadPacket);
  Writer negative;
  negative.put(int64_t{-1});
  CHECK_THROWS_AS(Reader(negative.bytes()).array<char>(), BadPacket);
}
