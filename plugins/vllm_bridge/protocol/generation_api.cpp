#include "plugins/vllm_bridge/protocol/generation_api.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "lib/http/client/error_text.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void wrong(const std::string& what, std::string_view data) {
  throw std::runtime_error(fmt::format("{}: {}", what, http::client::shown(data)));
}

std::string quoted(const std::string& text) { return Json(text).dump(); }

std::string listed(std::span<const int32_t> numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

// The keys that both APIs share, under vLLM's names, without braces. Penalties are there, at 1 and 0, as a server takes
// those that it does not find from the model's generation_config.json, and training knows of none.
std::string sampling_of(const Ask& ask) {
  const Request& r = ask.request;
  const auto made = static_cast<int64_t>(ask.tokens.size());
  std::string text = fmt::format(
      R"("n":1,"temperature":{},"top_p":{},"top_k":{},"min_p":{},"max_tokens":{},"stop_token_ids":{},"ignore_eos":{},)"
      R"("repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"logprobs":0,"skip_special_tokens":false)",
      r.temperature, r.top_p, r.top_k, r.min_p, r.max_new_tokens - made, listed(ask.stop_token_ids), r.ignore_eos);
  if (ask.with_seed && r.temperature > 0) text += fmt::format(R"(,"seed":{})", bridge::seed_at(r.seed, made) >> 1);
  return text;
}

float logprob_of(const Json& value, std::string_view data) {
  if (!value.is_number()) wrong("a log-prob is not a number", data);
  const auto logprob = value.get<float>();
  if (!std::isfinite(logprob) || logprob > 1e-3f) wrong("a log-prob is not a finite number of at most 0", data);
  return std::min(logprob, 0.0f);
}

void add_tokens_logprobs(const Json& choice, Chunk& chunk, std::string_view data) {
  const Json content = choice.value("/logprobs/content"_json_pointer, Json::array());
  for (const Json& entry : content) chunk.logprobs.push_back(logprob_of(entry.value("logprob", Json()), data));
}

void add_completions_logprobs(const Json& choice, Chunk& chunk, std::string_view data) {
  const Json values = choice.value("/logprobs/token_logprobs"_json_pointer, Json::array());
  for (const Json& value : values) chunk.logprobs.push_back(logprob_of(value, data));
}

}  // namespace

std::string_view path_of(GenerationApi api) {
  return api == GenerationApi::tokens ? "/inference/v1/generate" : "/v1/completions";
}

GenerationApi api_at(std::string_view path) {
  return path == path_of(GenerationApi::completions) ? GenerationApi::completions : GenerationApi::tokens;
}

// Written without a tree: prompts are long, and many at once.
std::string body_of(GenerationApi api, const Ask& ask) {
  std::string text = fmt::format(R"({{"request_id":{},"stream":true)", quoted(ask.name));
  if (!ask.cache_salt.empty()) text += R"(,"cache_salt":)" + quoted(ask.cache_salt);
  if (api == GenerationApi::tokens)
    text += fmt::format(R"(,"sampling_params":{{{},"detokenize":false}},"token_ids":[)", sampling_of(ask));
  else
    text +=
        fmt::format(R"(,{},"return_token_ids":true,"return_tokens_as_token_ids":true,"prompt":[)", sampling_of(ask));
  for (const std::span<const int32_t> part : {std::span(ask.request.prompt), std::span(ask.tokens)}) {
    for (const int32_t token : part) {
      const fmt::format_int digits(token);
      text.append(digits.data(), digits.size()) += ',';
    }
  }
  text.back() = ']';  // no prompt is empty
  return text += '}';
}

Chunk parse_chunk(GenerationApi api, std::string_view data) {
  Chunk chunk;
  if (data == "[DONE]") {
    chunk.done = true;
    return chunk;
  }
  if (std::optional<Chunk> usual = read_usual_event(api, data)) return std::move(*usual);
  const Json json = Json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) wrong("an event of the stream is not a JSON object", data);
  if (json.contains("error"))
    throw std::runtime_error("the server ended the stream: " + http::client::error_text(data));
  const Json choices = json.value("choices", Json());
  if (!choices.is_array()) wrong("an event of the stream has no choices", data);
  if (choices.empty()) return chunk;  // usage alone
  const Json& choice = choices[0];
  if (choices.size() > 1 || !choice.is_object() || choice.value("index", 0) != 0)
    wrong("an event of the stream is of several samples, one was asked for", data);
  const Json ids = choice.value("token_ids", Json());
  if (!ids.is_null() && !ids.is_array()) wrong("token_ids is not a list", data);
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX)
      wrong("a token is not a number of the vocabulary", data);
    chunk.tokens.push_back(id.get<int32_t>());
  }
  if (api == GenerationApi::tokens)
    add_tokens_logprobs(choice, chunk, data);
  else
    add_completions_logprobs(choice, chunk, data);
  if (chunk.tokens.size() != chunk.logprobs.size()) {
    wrong(fmt::format("an event of the stream has {} tokens and {} log-probs", chunk.tokens.size(),
                      chunk.logprobs.size()),
          data);
  }
  const Json finish = choice.value("finish_reason", Json());
  if (finish.is_string()) chunk.finish = finish.get<std::string>();
  return chunk;
}

}  // namespace hexad::vllm
