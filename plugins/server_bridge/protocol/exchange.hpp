// What goes to a server for one sample, and what comes back, apart from how either is written down.
#pragma once
#include <string>
#include <vector>

#include "plugins/server_bridge/protocol/request.hpp"

namespace hexad::bridge {

// A request, or what is left of one: its prompt is followed by the tokens that it has.
struct Ask {
  const Request& request;
  const std::vector<int32_t>& tokens;
  const std::vector<int32_t>& stop_token_ids;
  std::string name;        // unique, also among its earlier attempts
  std::string cache_salt;  // requests share prefixes only with those of the same salt
  bool with_seed = true;
  bool with_routes = false;  // routed_experts are wanted
};

// One event of the stream that answers it.
struct Chunk {
  std::vector<int32_t> tokens;  // new ones
  std::vector<float> logprobs;  // one a token
  // Which weights made the tokens of this attempt, from the start of the first span on. Empty: those in force made the
  // new ones.
  std::vector<hexad_version_span> spans = {};
  std::string finish = {};  // "": not yet; "stop" and "length" are ends, after others the request goes on elsewhere
  bool done = false;        // the stream's last event
  // With the end, where they are asked for: int32 [prompt and tokens but the last, layers, experts a token].
  std::vector<int32_t> routes = {};
  bool whole = false;       // there will be no more tokens, however many are left
};

}  // namespace hexad::bridge
