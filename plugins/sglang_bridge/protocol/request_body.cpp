#include "plugins/sglang_bridge/protocol/request_body.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>

namespace hexad::sglang {
namespace {

std::string quoted(const std::string& text) { return nlohmann::ordered_json(text).dump(); }

// With a comma after each.
void list(std::string& to, std::span<const int32_t> numbers) {
  for (const int32_t number : numbers) {
    const fmt::format_int digits(number);
    to.append(digits.data(), digits.size()) += ',';
  }
}

// As JSON.
std::string listed(std::span<const int32_t> numbers) {
  std::string text = "[";
  list(text, numbers);
  if (text.back() == ',') text.pop_back();
  return text += ']';
}

// Everything that a server could take from the model's generation_config.json is there: training knows nothing of it.
std::string sampling_of(const bridge::Ask& ask, int64_t stream_interval) {
  const bridge::Request& r = ask.request;
  const auto made = static_cast<int64_t>(ask.tokens.size());
  std::string text = fmt::format(
      R"("temperature":{},"top_p":{},"top_k":{},"min_p":{},"max_new_tokens":{},"stop_token_ids":{},"ignore_eos":{},)"
      R"("repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"skip_special_tokens":false,)"
      R"("no_stop_trim":true)",
      r.temperature, r.top_p, r.top_k > 0 ? r.top_k : -1, r.min_p, r.max_new_tokens - made, listed(ask.stop_token_ids),
      r.ignore_eos);
  if (ask.with_seed && r.temperature > 0)
    text += fmt::format(R"(,"sampling_seed":{})", bridge::seed_at(r.seed, made) >> 33);
  if (stream_interval > 1) text += fmt::format(R"(,"stream_interval":{})", stream_interval);
  return text;
}

}  // namespace

// Written without a tree: prompts are long, and many at once.
std::string request_body(const bridge::Ask& ask, int64_t stream_interval) {
  std::string text = fmt::format(R"({{"rid":{},"stream":true,"return_logprob":true,"sampling_params":{{{}}})",
                                 quoted(ask.name), sampling_of(ask, stream_interval));
  if (ask.with_routes) text += R"(,"return_routed_experts":true)";
  if (!ask.cache_salt.empty()) text += R"(,"extra_key":)" + quoted(ask.cache_salt);
  text += R"(,"input_ids":[)";
  list(text, ask.request.prompt);
  list(text, ask.tokens);
  text.back() = ']';  // no prompt is empty
  return text += '}';
}

bool takes_stream_interval(std::string_view version) {
  constexpr std::array<int, 3> kSince = {0, 5, 23};
  std::array<int, 3> parts = {};
  const char *at = version.data(), *const end = at + version.size();
  for (int& part : parts) {
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc()) break;
    at = next == end || *next != '.' ? end : next + 1;
  }
  return parts >= kSince;
}

}  // namespace hexad::sglang
