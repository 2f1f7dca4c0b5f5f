#include "plugins/sglang_bridge/protocol/event.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lib/http/client/error_text.hpp"

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void wrong(const std::string& what, std::string_view data) {
  throw std::runtime_error(fmt::format("{}: {}", what, http::client::shown(data)));
}

const Json& list_at(const Json& object, const char* key, std::string_view data) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) wrong(fmt::format("{} is not a list", key), data);
  return *found;
}

int64_t whole(const Json& value, const char* what, std::string_view data) {
  if (!value.is_number_integer()) wrong(fmt::format("{} is not a whole number", what), data);
  return value.get<int64_t>();
}

int32_t token_of(const Json& value, std::string_view data) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > INT32_MAX)
    wrong("a token is not a number of the vocabulary", data);
  return value.get<int32_t>();
}

float logprob_of(const Json& value, std::string_view data) {
  if (!value.is_number()) wrong("a log-prob is not a number", data);
  const auto logprob = value.get<float>();
  if (!std::isfinite(logprob) || logprob > 1e-3f) wrong("a log-prob is not a finite number of at most 0", data);
  return std::min(logprob, 0.0f);
}

// The bridge has named the weights of every server by their version.
int64_t version_of(const Json& name, std::string_view data) {
  const std::string text = name.is_string() ? name.get<std::string>() : name.dump();
  int64_t version = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version < 0) {
    wrong(fmt::format("its weights are called '{}', and this run has given them a number: does somebody else update "
                      "this server?",
                      http::client::shown(text)),
          data);
  }
  return version;
}

// The last event has a span for all that one version has made, and an empty one where it has made nothing.
std::vector<hexad_version_span> spans_of(const Json& spans, int64_t tokens, std::string_view data) {
  std::vector<hexad_version_span> result;
  int64_t at = 0;
  for (const Json& span : spans) {
    if (!span.is_object() || !span.contains("start") || !span.contains("end") || !span.contains("version"))
      wrong("a span of weight_versions has no start, end or version", data);
    const int64_t begin = whole(span.at("start"), "the start of a span", data);
    const int64_t end = whole(span.at("end"), "the end of a span", data);
    if (begin != at || end < begin)
      wrong(fmt::format("a span of weight_versions is from {} to {}, wanted one from {}", begin, end, at), data);
    const int64_t version = version_of(span.at("version"), data);
    if (end > begin) result.push_back({begin, version});
    at = end;
  }
  if (at != tokens) wrong(fmt::format("weight_versions has spans for {} of {} tokens", at, tokens), data);
  return result;
}

std::string finish_of(const Json& reason, std::string_view data) {
  if (reason.is_null()) return "";
  if (!reason.is_object() || !reason.contains("type") || !reason.at("type").is_string())
    wrong("finish_reason has no type", data);
  const Json status = reason.value("status_code", Json());
  if (status.is_number_integer() && status.get<int64_t>() >= 400) {
    throw std::runtime_error(fmt::format("the server ended the request with status {}: {}", status.get<int64_t>(),
                                         http::client::error_text(reason.dump())));
  }
  return reason.at("type").get<std::string>();
}

void read_tokens(const Json& event, const Json& meta, std::span<const int32_t> known, bridge::Chunk& chunk,
                 std::string_view data) {
  const Json& ids = list_at(event, "output_ids", data);
  const Json& logprobs = list_at(meta, "output_token_logprobs", data);
  if (ids.size() != logprobs.size())
    wrong(fmt::format("an event of the stream has {} tokens and {} log-probs", ids.size(), logprobs.size()), data);
  const Json count = meta.value("completion_tokens", Json(ids.size()));
  if (count != ids.size()) {
    wrong(
        fmt::format("an event of the stream has {} tokens of {}: each is to have all so far", ids.size(), count.dump()),
        data);
  }
  if (ids.size() < known.size())
    wrong(fmt::format("an event of the stream has {} tokens, and {} were there before", ids.size(), known.size()),
          data);
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t token = token_of(ids[i], data);
    if (i < known.size()) {
      if (token == known[i]) continue;
      wrong(fmt::format("token {} of the stream was {} and is {}", i, known[i], token), data);
    }
    const Json& entry = logprobs[i];
    if (!entry.is_array() || entry.size() < 2 || token_of(entry[1], data) != token)
      wrong(fmt::format("log-prob {} is not of token {}", i, token), data);
    chunk.tokens.push_back(token);
    chunk.logprobs.push_back(logprob_of(entry[0], data));
  }
}

// Little-endian int32 in base64.
std::vector<int32_t> routes_of(const Json& routes, std::string_view data) {
  if (!routes.is_string()) wrong("routed_experts is not a text", data);
  const auto& text = routes.get_ref<const std::string&>();
  std::string bytes(text.size() / 4 * 3, '\0');
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(), nullptr,
                        &size, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0 ||
      size % sizeof(int32_t) != 0) {
    wrong("routed_experts is no base64 of 32-bit numbers", data);
  }
  std::vector<int32_t> numbers(size / sizeof(int32_t));
  std::memcpy(numbers.data(), bytes.data(), size);
  return numbers;
}

}  // namespace

bridge::Chunk read_event(std::string_view data, std::span<const int32_t> known) {
  bridge::Chunk chunk;
  if (data == "[DONE]") {
    chunk.done = true;
    return chunk;
  }
  const Json event = Json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) wrong("an event of the stream is not a JSON object", data);
  if (event.contains("error"))
    throw std::runtime_error("the server ended the stream: " + http::client::error_text(data));
  if (event.value("index", Json(0)) != 0)
    wrong("an event of the stream is of several samples, one was asked for", data);
  const auto found = event.find("meta_info");
  if (found == event.end() || !found->is_object()) wrong("an event of the stream has no meta_info", data);
  const Json& meta = *found;
  chunk.finish = finish_of(meta.value("finish_reason", Json()), data);
  // Of a request that was aborted in the queue there may be nothing.
  if (chunk.finish == "abort" && event.value("output_ids", Json::array()).empty()) return chunk;
  read_tokens(event, meta, known, chunk, data);
  const auto tokens = static_cast<int64_t>(known.size() + chunk.tokens.size());
  if (const auto spans = meta.find("weight_versions"); spans != meta.end() && spans->is_array()) {
    chunk.spans = spans_of(*spans, tokens, data);
  } else if (const auto version = meta.find("weight_version"); version != meta.end() && !chunk.tokens.empty()) {
    chunk.spans = {{static_cast<int64_t>(known.size()), version_of(*version, data)}};
  }
  if (const auto routes = meta.find("routed_experts"); routes != meta.end() && !routes->is_null())
    chunk.routes = routes_of(*routes, data);
  return chunk;
}

}  // namespace hexad::sglang
