// Every test program: doctest, and a word about what a run on a GPU left out.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/support/test_device.hpp"

int main(int argc, char** argv) {
  if (const std::string why = test_device::refusal(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  const int result = doctest::Context(argc, argv).run();
  std::fputs(test_device::left_out().c_str(), stdout);
  return result;
}
