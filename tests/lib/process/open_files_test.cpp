#include "lib/process/open_files.hpp"

#include <doctest/doctest.h>

TEST_CASE("the soft limit of open files is raised to the hard one") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit lower = {before.rlim_max - 1, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  CHECK(hexad::process::raise_open_files() == before.rlim_max);
  rlimit now{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &now) == 0);
  CHECK(now.rlim_cur == before.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &before);
}
