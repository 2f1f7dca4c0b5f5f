// The two APIs that give tokens for tokens: /inference/v1/generate, and /v1/completions of servers without it. Both are
// asked for one sample a request, streamed, with the log-prob of each sampled token.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/vllm_bridge/protocol/request.hpp"

namespace hexad::vllm {

enum class GenerationApi { tokens, completions };

std::string_view path_of(GenerationApi api);

// A request, or what is left of one: its prompt is followed by the tokens that it has.
struct Ask {
  const Request& request;
  const std::vector<int32_t>& tokens;
  const std::vector<int32_t>& stop_token_ids;
  std::string name;        // unique, also among its earlier attempts
  std::string cache_salt;  // requests share prefixes only with those of the same salt
  bool with_seed = true;
};
std::string body_of(GenerationApi api, const Ask& ask);

// One event of the stream. Throws std::runtime_error that says what is wrong with it.
struct Chunk {
  std::vector<int32_t> tokens;  // new ones
  std::vector<float> logprobs;  // one a token
  std::string finish;           // "": not yet
  bool done = false;            // the stream's last event
};
Chunk parse_chunk(GenerationApi api, std::string_view data);

// What a server says in the body of an error; the body itself, cut, if it is not of the usual form.
std::string error_text(std::string_view body);

}  // namespace hexad::vllm
