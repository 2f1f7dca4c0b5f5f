// Runs that are compared bit for bit. On a GPU only policy.deterministic promises that: atomic additions have no order.
#pragma once
#include <ATen/Context.h>

#include "tests/support/test_device.hpp"

namespace backend_test {

// While it lives, a run on a GPU is deterministic as that key makes it.
class FixedOrder {
 public:
  FixedOrder() { set(test_device::is_gpu()); }
  ~FixedOrder() { set(false); }
  FixedOrder(const FixedOrder&) = delete;

 private:
  static void set(bool on) { at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false); }
};

}  // namespace backend_test
