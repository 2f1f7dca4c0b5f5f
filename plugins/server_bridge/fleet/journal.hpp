// What is known of each request from its submission to its end: nothing that a server has sent is lost with the server.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/http/client/event_loop.hpp"
#include "lib/http/client/event_stream.hpp"
#include "plugins/server_bridge/fleet/event.hpp"
#include "plugins/server_bridge/protocol/exchange.hpp"
#include "plugins/server_bridge/routes.hpp"

namespace hexad::bridge {

using namespace http::client;

struct Entry {
  // `eos`: the model's, which end it too unless the request says otherwise. `routes`: routed_experts are wanted; else
  // null; outlives the entry.
  Entry(Request from, const std::set<int32_t>& eos, const RouteShape* routes = nullptr);
  Request request;
  std::vector<int32_t> stop_token_ids;  // all that end it
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<hexad_version_span> spans;
  std::vector<int16_t> routes;  // of the attempt that brought the end

  // The attempt that is under way.
  int server = -1;   // -1: it waits for one
  std::string name;  // that the server knows it by
  uint64_t transfer = 0;
  EventStream stream;
  std::string finish;      // that the stream has named
  bool done = false;       // the stream has ended as it should
  bool whole = false;      // of its last chunk
  std::string answer;      // begun, where it is no stream
  std::string error_body;  // of an answer that is no stream
  std::string fault;       // what is wrong with the stream
  size_t tokens_before = 0;
  std::optional<Clock::time_point> idle_since;     // the first bytes since the last token, if some came without one
  std::optional<Clock::time_point> refused_since;  // servers have had no room for it (429) since then

  int avoid = -1;   // the server that failed it last: another is better
  int in_vain = 0;  // attempts in a row without a new token

  int64_t left() const { return request.max_new_tokens - static_cast<int64_t>(tokens.size()); }

  // The stream has named a reason that is not its length.
  bool stopped() const { return finish == "stop" || finish == "repetition"; }
  // The attempt is over.
  void count_attempt() { in_vain = tokens.size() > tokens_before ? 0 : in_vain + 1; }
  // Takes new tokens, sampled under `version` unless the chunk says better. Throws std::runtime_error if there are more
  // than were asked for, or if spans of versions or routes do not fit the tokens.
  void add(const Chunk& chunk, int64_t version);
  // How the request has ended, if its tokens say so: the message that said it may have been lost.
  // HEXAD_FINISH_NONE if it goes on.
  int32_t ended_by_tokens() const;
  std::unique_ptr<Event> event(int32_t finish, std::string error = {}) const;

 private:
  void add_span(int64_t start, int64_t version);
  void take_spans(const std::vector<hexad_version_span>& of_attempt);
  void take_routes(const Chunk& chunk);

  const RouteShape* route_shape_;
};

}  // namespace hexad::bridge
