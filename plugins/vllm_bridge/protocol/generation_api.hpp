// The two APIs that give tokens for tokens: /inference/v1/generate, and /v1/completions of servers without it. Both are
// asked for one sample a request, streamed, with the log-prob of each sampled token.
#pragma once
#include <functional>
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

// Server-sent events: the `data:` fields of a stream, whole, however its bytes are cut.
class EventStream {
 public:
  // `take` is called with the data of each event that is complete; false from it ends the call. Throws
  // std::runtime_error at an event of more than 64 MiB.
  void feed(std::string_view bytes, const std::function<bool(std::string_view data)>& take);

 private:
  std::string line_;  // begun
  std::string data_;  // of the event that is being read
};

// One event of the stream. Throws std::runtime_error that says what is wrong with it.
struct Chunk {
  std::vector<int32_t> tokens;  // new ones
  std::vector<float> logprobs;  // one a token
  std::string finish;           // "": not yet
  bool done = false;            // the stream's last event
};
Chunk parse_chunk(GenerationApi api, std::string_view data);

// The same for the events that a healthy stream is made of, in one pass, as thousands come every second
// (usual_event.cpp). Nothing if there is anything unusual about one: then parse_chunk is to judge.
std::optional<Chunk> read_usual_event(GenerationApi api, std::string_view data);

// What a server says in the body of an error; the body itself, cut, if it is not of the usual form.
std::string error_text(std::string_view body);

}  // namespace hexad::vllm
