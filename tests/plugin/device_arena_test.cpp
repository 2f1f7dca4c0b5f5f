#include "sdk/verify/cuda/device_arena.hpp"

#include <doctest/doctest.h>

using hexad::verify::DeviceArena;

TEST_CASE("an arena hands out places that do not overlap, and joins those that come back") {
  DeviceArena arena(1024);
  CHECK(arena.take(0) == 0);
  CHECK(arena.take(257) == 256);
  CHECK(arena.take(256) == 768);
  CHECK(arena.take(1) == std::nullopt);
  CHECK(arena.take(SIZE_MAX) == std::nullopt);
  CHECK(arena.give(256));
  CHECK_FALSE(arena.give(256));
  CHECK_FALSE(arena.give(512));  // inside of what was taken
  CHECK(arena.take(513) == std::nullopt);
  CHECK(arena.give(768));
  CHECK(arena.take(768) == 256);
  CHECK(arena.give(256));
  CHECK(arena.give(0));
  CHECK(arena.take(1024) == 0);
}
