// A whole answer, of a call that is no stream.
#pragma once
#include <string>

#include "plugins/vllm_bridge/http/transfers.hpp"

namespace hexad::vllm {

struct Answer {
  HttpResult result;
  std::string body;
  bool ok() const { return result.complete && result.status == 200; }
  // It says nothing of what was asked: the server is in trouble.
  bool failed() const { return !result.complete || result.status >= 500; }
  std::string trouble() const;  // what is wrong with one that is not ok
};

// Asks, and collects the answer; the name of the transfer. On the loop's thread.
uint64_t ask(Transfers& transfers, HttpRequest request, std::function<void(const Answer&)> then);

}  // namespace hexad::vllm
