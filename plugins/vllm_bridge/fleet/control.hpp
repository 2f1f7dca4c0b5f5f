// Calls to servers that a host's call waits for: pause, weights, sleep.
#pragma once
#include <hexad/services.hpp>

#include <string>
#include <vector>

#include "plugins/vllm_bridge/fleet/fleet.hpp"

namespace hexad::vllm {

// A server as it was when it was looked at.
struct Target {
  int index = 0;
  int64_t incarnation = 0;
  std::string url, api_key, label;
  bool dev_mode = false, sleep_mode = false, cache_salt = false;
};

class Control {
 public:
  Control(EventLoop& loop, Fleet& fleet) : loop_(loop), fleet_(fleet) {}

  std::vector<Target> up();  // those that take requests now

  // POSTs to all at once and waits for every answer, none longer than `deadline`.
  std::vector<Answer> post(const std::vector<Target>& targets, const std::string& path, const std::string& body,
                           Seconds deadline);
  // The same; a server that does not answer with 200 has failed, and leaves the targets.
  void post_or_fail(std::vector<Target>& targets, const std::string& path, const std::string& body, Seconds deadline);

 private:
  EventLoop& loop_;
  Fleet& fleet_;
};

}  // namespace hexad::vllm
