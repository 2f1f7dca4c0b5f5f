// A port that is shut to newcomers, and opened again.
#include "lib/ipc/door.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "lib/base/error.hpp"
#include "tests/support/listening.hpp"

using hexad::ipc::Door;
using test_support::Idlers;

namespace {

// Whether all of them are let in before long.
bool comes_in(const Idlers& idlers) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (idlers.let_in() < idlers.size() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return idlers.let_in() == idlers.size();
}

}  // namespace

TEST_CASE("whoever comes while a door is shut waits, and comes in when it opens") {
  Door door("127.0.0.1", 16);
  const Idlers first(door.port(), 1);
  REQUIRE(comes_in(first));
  door.shut();
  REQUIRE(door.is_shut());
  const Idlers second(door.port(), 3);
  CHECK(second.size() == 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  CHECK(second.let_in() == 0);
  CHECK(first.let_in() == 1);  // what was there goes on
  door.open();
  CHECK_FALSE(door.is_shut());
  CHECK(comes_in(second));
}

TEST_CASE("a door is shut when the unproven are too many, and opens when half of them have gone") {
  Door door("127.0.0.1", 4);
  door.mind(7, 8);
  CHECK_FALSE(door.is_shut());
  door.mind(8, 8);
  CHECK(door.is_shut());
  door.mind(4, 8);
  CHECK(door.is_shut());
  door.mind(3, 8);
  CHECK_FALSE(door.is_shut());
}

TEST_CASE("a door's socket goes to a library and stays the door's to shut") {
  Door door("127.0.0.1", 4);
  const int theirs = door.duplicate();
  door.shut();
  const Idlers late(door.port(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  CHECK(late.let_in() == 0);
  ::close(theirs);
}

TEST_CASE("a door listens on its address alone, and says what keeps it from that") {
  const Door door("127.0.0.1", 1);
  for (const test_support::Place& place : test_support::listening(::getpid()))
    if (place.port == door.port()) CHECK(place.address == test_support::kLoopback);
  for (const char* address : {"localhost", "192.0.2.1", ""}) {
    try {
      const Door wrong(address, 1);
      FAIL_CHECK("it listens on " << address);
    } catch (const hexad::Error& error) {
      const std::string said = error.what();
      CHECK_MESSAGE(said.starts_with("cannot listen on " + std::string(address) + ": "), said);
    }
  }
}
