// A completion on its way to the host, with everything that it points to.
#pragma once
#include <hexad/abi.h>

#include <memory>
#include <string>
#include <vector>

#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

struct Event {
  hexad_completion completion{};
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<hexad_version_span> spans;
  std::string error;
};

// A copy of what the sequence holds now. `error` is for HEXAD_FINISH_ERROR.
std::unique_ptr<Event> make_event(const Sequence& sequence, int32_t finish, std::string error = {});

}  // namespace hexad::native
