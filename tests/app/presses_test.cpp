// What counts as a second Ctrl-C.
#include "app/presses.hpp"

#include <doctest/doctest.h>

#include <csignal>

using hexad::cli::Presses;
using enum Presses::Meaning;

TEST_CASE("SIGINT twice is two presses, however fast") {
  Presses presses;
  CHECK(presses.count(SIGINT, 5000) == first);
  CHECK(presses.count(SIGINT, 5001) == second);
}

TEST_CASE("SIGTERM that timeout(1) sends to its child and to their group is one press") {
  Presses presses;
  CHECK(presses.count(SIGTERM, 5000) == first);
  CHECK(presses.count(SIGTERM, 5001) == same);
  CHECK(presses.count(SIGTERM, 5999) == same);
  CHECK(presses.count(SIGTERM, 6000) == second);
}

TEST_CASE("one Ctrl-C that comes as SIGINT and SIGTERM, in any order and number, is one press") {
  for (const auto& [one, other] : {std::pair{SIGINT, SIGTERM}, std::pair{SIGTERM, SIGINT}}) {
    Presses presses;
    CHECK(presses.count(one, 5000) == first);
    CHECK(presses.count(other, 5010) == same);
    CHECK(presses.count(other, 5020) == same);
    CHECK(presses.count(one, 5999) == same);
    CHECK(presses.count(other, 6000) == second);
  }
}

TEST_CASE("another signal a second later is a second press") {
  Presses presses;
  CHECK(presses.count(SIGTERM, 0) == first);
  CHECK(presses.count(SIGINT, 1000) == second);
}
