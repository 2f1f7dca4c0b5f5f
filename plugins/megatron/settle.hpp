// What is under way when a call fails.
#pragma once
#include <exception>

#include "modeling/parallel/group.hpp"

namespace hexad::megatron {

// Waits; what goes wrong is dropped, for the error that brought us here is the one to report.
inline void settle(modeling::Pending& pending) noexcept {
  try {
    pending.wait();
  } catch (const std::exception&) {
    pending = {};
  }
}

}  // namespace hexad::megatron
