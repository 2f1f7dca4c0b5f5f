// The process that starts and watches the ranks.
#pragma once
#include <optional>

#include "lib/base/error.hpp"
#include "lib/process/spawner.hpp"

namespace hexad::cluster {

// process::Spawner, whose errors are Error(worker) here. Make it first in main, before any thread exists.
class Spawner {
 public:
  Spawner() {
    try {
      spawner_.emplace("hexad-spawner");
    } catch (const std::runtime_error& error) {
      fail(ErrorKind::worker, "spawner: {}", error.what());
    }
  }
  pid_t spawn(const process::SpawnRequest& request) {
    return saying_worker([&] { return spawner_->spawn(request); });
  }
  void kill(pid_t pid, int signal) {
    saying_worker([&] { spawner_->kill(pid, signal); });
  }
  std::optional<process::ChildExit> next_exit(int timeout_ms) {
    return saying_worker([&] { return spawner_->next_exit(timeout_ms); });
  }

 private:
  template <typename Act>
  static auto saying_worker(const Act& act) -> decltype(act()) {
    try {
      return act();
    } catch (const std::runtime_error& error) {
      fail(ErrorKind::worker, "{}", error.what());
    }
  }
  std::optional<process::Spawner> spawner_;
};

}  // namespace hexad::cluster
