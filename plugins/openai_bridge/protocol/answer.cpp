#include "plugins/openai_bridge/protocol/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "lib/http/client/error_text.hpp"

namespace hexad::openai {
namespace {

using Json = nlohmann::ordered_json;
using http::client::shown;

[[noreturn]] void wrong(const std::string& what, std::string_view body) {
  throw std::runtime_error(fmt::format("{}: {}", what, shown(body)));
}

// Null where it is not there.
const Json& at(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

Json parsed(std::string_view body) { return Json::parse(body, nullptr, /*allow_exceptions=*/false); }

const Json& choice_of(const Json& json) {
  static const Json none;
  const Json& choices = at(json, "choices");
  return choices.is_array() && choices.size() == 1 ? choices[0] : none;
}

int32_t id_of(const Json& value, int64_t vocabulary, std::string_view body) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > INT32_MAX)
    wrong("a token is not a number of the vocabulary", body);
  const auto id = value.get<int32_t>();
  if (vocabulary > 0 && id >= vocabulary) {
    throw std::runtime_error(
        fmt::format("token {}, and the model of policy.model_name has {}: is it the server of "
                    "another model?",
                    id, vocabulary));
  }
  return id;
}

// N of "token_id:N".
std::optional<int64_t> named_id(const std::string& text) {
  constexpr std::string_view kName = "token_id:";
  if (!text.starts_with(kName)) return std::nullopt;
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data() + kName.size(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(id) : std::nullopt;
}

float logprob_of(const Json& value, std::string_view body) {
  if (!value.is_number()) wrong("a log-prob is not a number", body);
  const auto logprob = value.get<float>();
  if (!std::isfinite(logprob) || logprob > 1e-3f) wrong("a log-prob is not a finite number of at most 0", body);
  return std::min(logprob, 0.0f);
}

// What an answer tells of its tokens.
struct Told {
  Tells by = Tells::text;
  std::vector<Json> ids;
  std::vector<std::string> texts;
  std::vector<Json> logprobs;
};

// Of lists of OpenAI's two APIs: {tokens: [...], token_logprobs: [...]}, or {content: [{id, token, logprob}]}.
void read_logprobs(const Json& logprobs, Told& told) {
  for (const Json& entry : at(logprobs, "content")) {
    told.logprobs.push_back(at(entry, "logprob"));
    if (const Json& id = at(entry, "id"); !id.is_null()) told.ids.push_back(id);
    if (const Json& token = at(entry, "token"); token.is_string()) told.texts.push_back(token.get<std::string>());
  }
  for (const Json& value : at(logprobs, "token_logprobs")) told.logprobs.push_back(value);
  for (const Json& token : at(logprobs, "tokens")) {
    if (token.is_number_integer()) told.ids.push_back(token);
    if (!token.is_string()) continue;
    told.texts.push_back(token.get<std::string>());
    if (const auto id = named_id(told.texts.back())) told.ids.push_back(*id);
  }
}

Told told_by(const Json& choice, std::string_view body) {
  Told told;
  read_logprobs(at(choice, "logprobs"), told);
  if (const Json& ids = at(choice, "token_ids"); ids.is_array()) {
    const std::vector<Json> own(ids.begin(), ids.end());
    if (!told.ids.empty() && told.ids != own) wrong("token_ids and the tokens of its log-probs are not the same", body);
    told.ids = own, told.by = Tells::token_ids;
  } else if (!told.ids.empty() && told.ids.size() >= told.texts.size()) {
    told.by = Tells::token_ids;
  } else if (!told.texts.empty()) {
    told.by = Tells::token_texts;
  }
  return told;
}

void check_prompt(const Json& usage, const Asked& asked) {
  const Json& count = at(usage, "prompt_tokens");
  if (!count.is_number_integer() || count == asked.prompt) return;
  throw std::runtime_error(
      fmt::format("it has read {} tokens of a prompt of {} (usage.prompt_tokens): it cuts prompts, "
                  "adds tokens, or has another tokenizer",
                  count.dump(), asked.prompt));
}

std::string finish_of(const Json& choice, std::string_view body) {
  const Json& reason = at(choice, "finish_reason");
  if (reason != "stop" && reason != "length")
    wrong(fmt::format("its sample has ended with finish_reason {}, wanted stop or length", reason.dump()), body);
  return reason.get<std::string>();
}

std::vector<int32_t> ids_of(const Told& told, const Json& choice, const Json& usage, const Asked& asked,
                            const TextTokens& text, std::string_view body) {
  if (told.by == Tells::token_texts && asked.logprobs) return text.ids_of(told.texts);
  if (told.by != Tells::token_ids) {
    const Json& written = at(choice, "text");
    if (!written.is_string()) wrong("its sample has neither token ids nor a text", body);
    return text.ids_of(written.get<std::string>());
  }
  const Json& count = at(usage, "completion_tokens");
  if (count.is_number_integer() && count != told.ids.size()) {
    wrong(fmt::format("it has made {} tokens and tells the ids of {} (llama.cpp leaves out those that end within a "
                      "character: without policy.generation.openai_cfg.logprobs its text is tokenised again)",
                      count.dump(), told.ids.size()),
          body);
  }
  std::vector<int32_t> ids;
  for (const Json& id : told.ids) ids.push_back(id_of(id, asked.vocabulary, body));
  return ids;
}

void add_logprobs(const Told& told, bridge::Chunk& chunk, const Asked& asked, std::string_view body) {
  if (!asked.logprobs) {
    chunk.logprobs.assign(chunk.tokens.size(), 0.0f);
    return;
  }
  if (told.logprobs.empty() && !chunk.tokens.empty()) {
    wrong(
        "it gives no log-probs, although asked for them: wanted logprobs of each token. Set "
        "policy.generation.openai_cfg.logprobs to false to evaluate without",
        body);
  }
  if (told.logprobs.size() != chunk.tokens.size())
    wrong(fmt::format("it has {} tokens and {} log-probs", chunk.tokens.size(), told.logprobs.size()), body);
  for (const Json& value : told.logprobs) chunk.logprobs.push_back(logprob_of(value, body));
}

// What the server made of stop tokens is not known: not each knows the model's, or those of a request.
void cut_at_stop(bridge::Chunk& chunk, const Asked& asked) {
  const auto stop = std::ranges::find_if(
      chunk.tokens, [&](int32_t id) { return std::ranges::find(asked.stop_ids, id) != asked.stop_ids.end(); });
  if (stop == chunk.tokens.end()) return;
  const auto count = static_cast<size_t>(stop - chunk.tokens.begin()) + 1;
  chunk.tokens.resize(count), chunk.logprobs.resize(count);
  chunk.finish = "stop";
}

}  // namespace

Tells tells_by(std::string_view body) {
  const Json json = parsed(body);
  try {
    return told_by(choice_of(json), body).by;
  } catch (const std::runtime_error&) {  // read_answer says it
    return Tells::token_ids;
  }
}

std::string text_in(std::string_view body) {
  const Json json = parsed(body);
  const Json& text = at(choice_of(json), "text");
  return text.is_string() ? text.get<std::string>() : "";
}

bridge::Chunk read_answer(std::string_view body, const Asked& asked, const TextTokens& text) {
  const Json json = parsed(body);
  if (!json.is_object()) wrong("its answer is not a JSON object", body);
  if (!at(json, "error").is_null()) throw std::runtime_error("it answers an error: " + http::client::error_text(body));
  const Json& choice = choice_of(json);
  if (!choice.is_object()) wrong("its answer has no list `choices` of one sample", body);
  const Json& usage = at(json, "usage");
  check_prompt(usage, asked);
  const Told told = told_by(choice, body);
  bridge::Chunk chunk;
  chunk.finish = finish_of(choice, body);
  chunk.tokens = ids_of(told, choice, usage, asked, text, body);
  add_logprobs(told, chunk, asked, body);
  const auto count = static_cast<int64_t>(chunk.tokens.size());
  if (told.by == Tells::token_ids && asked.text_prompt && chunk.finish == "length" && count < asked.most)
    wrong(fmt::format("it has stopped for length after {} of {} tokens", count, asked.most), body);
  // Made of text, they need not be as many as the server drew.
  if (told.by != Tells::token_ids && count > asked.most) {
    chunk.tokens.resize(static_cast<size_t>(asked.most)), chunk.logprobs.resize(chunk.tokens.size());
    chunk.finish = "length";
  }
  chunk.whole = told.by != Tells::token_ids || asked.text_prompt;
  cut_at_stop(chunk, asked);
  return chunk;
}

}  // namespace hexad::openai
