#include "plugins/server_bridge/fleet/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace hexad::bridge {

Entry::Entry(Request from, const std::set<int32_t>& eos, const RouteShape* routes)
    : request(std::move(from)), stop_token_ids(request.stop_token_ids), route_shape_(routes) {
  if (request.ignore_eos) return;
  for (const int32_t id : eos) {
    if (std::find(stop_token_ids.begin(), stop_token_ids.end(), id) == stop_token_ids.end())
      stop_token_ids.push_back(id);
  }
}

void Entry::add(const Chunk& chunk, int64_t version) {
  if (static_cast<int64_t>(chunk.tokens.size()) > left()) {
    throw std::runtime_error(fmt::format("{} more tokens, {} were left of the {} asked for", chunk.tokens.size(),
                                         left(), request.max_new_tokens));
  }
  if (chunk.spans.empty() && !chunk.tokens.empty()) add_span(static_cast<int64_t>(tokens.size()), version);
  tokens.insert(tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
  logprobs.insert(logprobs.end(), chunk.logprobs.begin(), chunk.logprobs.end());
  take_spans(chunk.spans);
  if (route_shape_ && (chunk.finish == "stop" || chunk.finish == "length")) take_routes(chunk);
}

// The last token was never run, and has none.
void Entry::take_routes(const Chunk& chunk) {
  if (chunk.routes.empty()) throw std::runtime_error("an end without routed_experts, which were asked for");
  routes = column_of(*route_shape_, chunk.routes, static_cast<int64_t>(request.prompt.size() + tokens.size()) - 1);
}

void Entry::add_span(int64_t start, int64_t version) {
  if (spans.empty() || spans.back().version != version) spans.push_back({start, version});
}

// What a server says at the end of an attempt takes the place of what was believed as its tokens came.
void Entry::take_spans(const std::vector<hexad_version_span>& of_attempt) {
  if (of_attempt.empty()) return;
  const auto before = static_cast<int64_t>(tokens_before), end = static_cast<int64_t>(tokens.size());
  while (!spans.empty() && spans.back().start >= before + of_attempt.front().start) spans.pop_back();
  int64_t last = before - 1;
  for (const hexad_version_span& span : of_attempt) {
    const int64_t start = before + span.start;
    if (start <= last || start >= end) {
      throw std::runtime_error(
          fmt::format("a span of weights that begins at token {} of {}", span.start, end - before));
    }
    add_span(last = start, span.version);
  }
}

int32_t Entry::ended_by_tokens() const {
  if (tokens.empty()) return whole ? HEXAD_FINISH_LENGTH : HEXAD_FINISH_NONE;
  const bool stopped = std::find(stop_token_ids.begin(), stop_token_ids.end(), tokens.back()) != stop_token_ids.end();
  if (stopped) return HEXAD_FINISH_STOP;
  return left() == 0 || whole ? HEXAD_FINISH_LENGTH : HEXAD_FINISH_NONE;
}

std::unique_ptr<Event> Entry::event(int32_t finish, std::string error) const {
  auto made = std::make_unique<Event>();
  made->tokens = tokens, made->logprobs = logprobs, made->spans = spans;
  made->error = std::move(error);
  if (route_shape_) {
    made->routes = routes;
    made->prompt_size = static_cast<int64_t>(request.prompt.size());
    made->route_layers = static_cast<int64_t>(route_shape_->layers.size()), made->route_experts = route_shape_->topk;
  }
  made->seal(request.id, finish);
  return made;
}

}  // namespace hexad::bridge
