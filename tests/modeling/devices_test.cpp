// Where the operators' tests run.
#include "tests/modeling/support/devices.hpp"

#include <doctest/doctest.h>

#include "tests/support/test_device.hpp"

TEST_CASE("a run on GPUs tests every operator on the CPU and on a GPU") {
  const size_t devices = hexad::modeling::test_devices().size();
  CHECK((!test_device::is_gpu() || devices == 2));
}
