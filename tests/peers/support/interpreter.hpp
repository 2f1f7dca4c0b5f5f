// The interpreter of an engine's environment, which tools/setup_peers.sh makes.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace peers_test {

inline std::string interpreter(const char* variable) {
  const char* path = std::getenv(variable);
  REQUIRE_MESSAGE(path, variable, " is not set: run `make test-peers`");
  return path;
}

}  // namespace peers_test
