// Workers that host the toy plugins, for tests of what is built on them.
#pragma once
#include "core/cluster/process/worker_group.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/toy/toy.hpp"

namespace toy {

namespace protocol = hexad::cluster::protocol;

// What `start` needs so that a worker hosts the toy backend, the C loss and the toy generator; `fault` is the
// backend's.
inline protocol::Start start_command(const std::string& fault = "", const std::string& generator_fault = "") {
  const auto own = [](const std::string& text) {
    return text.empty() ? plugin_test::Json::object() : plugin_test::Json{{"fault", text}};
  };
  protocol::Start start;
  start.device = "cpu";
  start.timeout_ms = 10000;
  start.roles = {"toy_backend", "ppo_clip_c", "toy_generator"};
  start.loss_section = "loss_fn";
  start.plugins["paths"] = {plugins().string()};
  start.policy["plugin_config"] = own(fault);
  start.generation["plugin_config"] = own(generator_fault);
  return start;
}

// With a generator whose polls take so long and hand out one completion each.
inline protocol::Start slow_start_command(int64_t poll_ms) {
  protocol::Start start = start_command();
  start.generation["plugin_config"]["poll_ms"] = poll_ms;
  return start;
}

// Makes `start` of one of `world` ranks that train and generate together.
inline void join_world(protocol::Start& start, int world, int port) {
  start.world_size = start.local_world = world, start.block = {0, world}, start.master_port = port;
}

// Starts the toys on every rank; `fault` is the backend's on the last one, `first_fault` on the first. A build with
// LibTorch makes a process group of them; without it every rank is a world of its own, which the toys do not notice.
inline void start_all(hexad::cluster::WorkerGroup& group, const std::string& fault = "",
                      const std::string& first_fault = "") {
  const bool runtime = fs::exists(hexad().parent_path().parent_path() / "lib/libhexad_runtime.so");
  const int port = test_support::free_port();
  group.call<protocol::Start>(group.all(), [&](int rank) {
    protocol::Start start = start_command(rank == group.size() - 1 ? fault : rank == 0 ? first_fault : "");
    if (runtime) join_world(start, group.size(), port);
    return start;
  });
}

// One worker on a thread of the test; `started` is what its plugins said of themselves.
struct InProcess {
  explicit InProcess(const std::string& fault = "", const std::string& generator_fault = "")
      : InProcess(start_command(fault, generator_fault)) {}
  explicit InProcess(const protocol::Start& start) : group(nullptr, {}), started(group.call(group.all(), start)) {}
  hexad::cluster::WorkerGroup group;
  std::vector<protocol::Start::Reply> started;
};

}  // namespace toy
