// Errors of the runtime: exceptions inside, codes and a text per thread outside.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include <hexad/abi.h>

namespace hexad::runtime {

class Error : public std::runtime_error {
 public:
  Error(hexad_code code, const std::string& text) : std::runtime_error(text), code_(code) {}
  hexad_code code() const { return code_; }

 private:
  hexad_code code_;
};

// The text of this thread's latest failure; "" before the first.
const char* last_error();

// Turns the exception in flight into a code and keeps "what: text" for last_error(). Timeouts of stores and collectives
// become HEXAD_DEADLINE_EXCEEDED, lost peers HEXAD_UNAVAILABLE, a full device HEXAD_RESOURCE_EXHAUSTED.
hexad_code record_exception(const std::string& what);

// Runs `body`, whose exceptions become codes. `what` names the operation in the message; it is called only on failure.
template <typename What, typename Body>
hexad_code guarded(What&& what, Body&& body) {
  try {
    body();
    return HEXAD_OK;
  } catch (...) {
    return record_exception(what());
  }
}

}  // namespace hexad::runtime
