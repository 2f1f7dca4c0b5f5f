#include "plugins/vllm_bridge/protocol/generation_api.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 300;  // bytes of a body in a message

std::string shown(std::string_view text) {
  std::string cut(text.substr(0, kShown));
  for (char& c : cut) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text.size() > kShown ? cut + "..." : cut;
}

[[noreturn]] void wrong(const std::string& what, std::string_view data) {
  throw std::runtime_error(fmt::format("{}: {}", what, shown(data)));
}

// The keys that both APIs share, under vLLM's names.
void add_sampling(Json& to, const Ask& ask) {
  const Request& r = ask.request;
  to["n"] = 1;
  to["temperature"] = r.temperature;
  to["top_p"] = r.top_p;
  to["top_k"] = r.top_k;
  to["min_p"] = r.min_p;
  to["max_tokens"] = r.max_new_tokens - static_cast<int64_t>(ask.tokens.size());
  to["stop_token_ids"] = ask.stop_token_ids;
  to["ignore_eos"] = r.ignore_eos;
  to["logprobs"] = 0;
  to["skip_special_tokens"] = false;
  if (ask.with_seed && r.temperature > 0) {
    to["seed"] = static_cast<int64_t>(seed_at(r.seed, static_cast<int64_t>(ask.tokens.size())) >> 1);
  }
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

std::string body_of(GenerationApi api, const Ask& ask) {
  Json body;
  std::vector<int32_t> tokens = ask.request.prompt;
  tokens.insert(tokens.end(), ask.tokens.begin(), ask.tokens.end());
  body["request_id"] = ask.name;
  body["stream"] = true;
  if (!ask.cache_salt.empty()) body["cache_salt"] = ask.cache_salt;
  if (api == GenerationApi::tokens) {
    body["token_ids"] = std::move(tokens);
    Json& sampling = body["sampling_params"] = Json::object();
    add_sampling(sampling, ask);
    sampling["detokenize"] = false;
  } else {
    body["prompt"] = std::move(tokens);
    add_sampling(body, ask);
    body["return_token_ids"] = true;
    body["return_tokens_as_token_ids"] = true;
  }
  return body.dump();
}

Chunk parse_chunk(GenerationApi api, std::string_view data) {
  Chunk chunk;
  if (data == "[DONE]") {
    chunk.done = true;
    return chunk;
  }
  const Json json = Json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) wrong("an event of the stream is not a JSON object", data);
  if (json.contains("error")) throw std::runtime_error("the server ended the stream: " + error_text(data));
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

std::string error_text(std::string_view body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto text_at = [&](const char* pointer) -> std::string {
    const Json::json_pointer at(pointer);
    return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
  };
  if (json.is_object()) {
    for (const char* pointer : {"/error/message", "/message", "/error", "/detail"}) {
      if (const std::string text = text_at(pointer); !text.empty()) return shown(text);
    }
  }
  return shown(body);
}

}  // namespace hexad::vllm
