// Scenarios of all files of this test program, for its child processes.
#pragma once
#include "tests/runtime/rank_process.hpp"

namespace backend_test {

inline rank_process::Scenarios& scenarios() {
  static rank_process::Scenarios all;
  return all;
}

inline bool add_scenarios(const rank_process::Scenarios& more) {
  scenarios().insert(more.begin(), more.end());
  return true;
}

}  // namespace backend_test
