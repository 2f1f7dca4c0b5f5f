// What is asked of a server, apart from how it is written down.
#pragma once
#include <hexad/abi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hexad::bridge {

// A request of the host, with everything that it points to.
struct Request {
  uint64_t id = 0, group = 0, seed = 0;
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 1;
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  std::vector<int32_t> stop_token_ids;
  std::vector<std::string> stop_strings;
  bool ignore_eos = false, stream = false;

  // What is sampled is drawn from the model's own distribution.
  bool plain() const { return temperature == 1 && top_p >= 1 && min_p <= 0 && top_k <= 0; }
};

// A copy of it. Throws sdk::Error (invalid argument) that names the request if it is malformed, or has a token that is
// none of the `vocabulary` (0: any may be).
Request copy_request(const hexad_request& from, int64_t vocabulary = 0);

// A number from (seed, position): a request that goes on elsewhere draws on, and not the same numbers again.
uint64_t seed_at(uint64_t seed, int64_t position);

}  // namespace hexad::bridge
