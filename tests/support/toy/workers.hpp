// Workers that host the toy plugins, for tests of what is built on them.
#pragma once
#include "core/cluster/process/worker_group.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/toy/toy.hpp"

namespace toy {

using hexad::cluster::Message;

// What `start` needs so that a worker hosts the toy backend, the C loss and the toy generator; `fault` is the
// backend's.
inline Message start_message(const std::string& fault = "", const std::string& generator_fault = "") {
  const auto own = [](const std::string& text) {
    return text.empty() ? plugin_test::Json::object() : plugin_test::Json{{"fault", text}};
  };
  Message message;
  message.header = {{"world_size", 1},
                    {"device", "cpu"},
                    {"master_address", "127.0.0.1"},
                    {"master_port", 0},
                    {"timeout_ms", 10000},
                    {"plugins", {{"paths", {plugins().string()}}}},
                    {"roles", {{"backend", "toy_backend"}, {"loss", "ppo_clip_c"}, {"generator", "toy_generator"}}},
                    {"policy", {{"plugin_config", own(fault)}}},
                    {"generation", {{"plugin_config", own(generator_fault)}}},
                    {"loss_fn", plugin_test::Json::object()}};
  return message;
}

// With a generator whose polls take so long and hand out one completion each.
inline Message slow_start_message(int64_t poll_ms) {
  Message message = start_message();
  message.header["generation"]["plugin_config"]["poll_ms"] = poll_ms;
  return message;
}

// Starts the toys on every rank; `fault` is the backend's on the last one, `first_fault` on the first. A build with LibTorch makes a process group
// of them; without it every rank is a world of its own, which the toys do not notice.
inline void start_all(hexad::cluster::WorkerGroup& group, const std::string& fault = "",
                      const std::string& first_fault = "") {
  const bool runtime = fs::exists(hexad().parent_path().parent_path() / "lib/libhexad_runtime.so");
  const int port = test_support::free_port();
  group.call_all("start", [&](int rank) {
    Message message = start_message(rank == group.size() - 1 ? fault : rank == 0 ? first_fault : "");
    if (runtime) message.header["world_size"] = group.size(), message.header["master_port"] = port;
    return message;
  });
}

// One worker on a thread of the test; `started` is what its plugins said of themselves.
struct InProcess {
  explicit InProcess(const std::string& fault = "", const std::string& generator_fault = "")
      : InProcess(start_message(fault, generator_fault)) {}
  explicit InProcess(const Message& start) : group(nullptr, {}) {
    for (const Message& answer : group.call_all("start", start)) started.push_back(answer.header);
  }
  hexad::cluster::WorkerGroup group;
  std::vector<hexad::cluster::Json> started;
};

}  // namespace toy
