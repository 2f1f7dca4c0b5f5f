#include "plugins/openai_bridge/protocol/request_body.hpp"

#include <fmt/format.h>

#include <span>
#include <stdexcept>

namespace hexad::openai {
namespace {

using Json = nlohmann::ordered_json;

// What else could shape a sample is there with the value that leaves it off, as servers take what they do not find from
// a default of their own (llama.cpp's top_k is 40), and training knows of none.
void add_filters(Json& body, const bridge::Ask& ask) {
  const bridge::Request& r = ask.request;
  body["top_k"] = r.top_k, body["min_p"] = r.min_p;
  body["stop_token_ids"] = ask.stop_token_ids;
  body["ignore_eos"] = r.ignore_eos;
  body["repetition_penalty"] = 1, body["presence_penalty"] = 0, body["frequency_penalty"] = 0;
  body["skip_special_tokens"] = false;
}

// With a comma after each.
void list(std::string& to, std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    const fmt::format_int digits(id);
    to.append(digits.data(), digits.size()) += ',';
  }
}

}  // namespace

const Form& form_named(std::string_view name) {
  for (const Form& form : kForms)
    if (form.name == name) return form;
  throw std::out_of_range("there is no form of that name");
}

std::string request_body(const Form& form, const Fixed& fixed, const bridge::Ask& ask, const std::string& text) {
  const bridge::Request& r = ask.request;
  const auto made = static_cast<int64_t>(ask.tokens.size());
  Json body = {{"model", fixed.model},         {"stream", false}, {"n", 1}, {"max_tokens", r.max_new_tokens - made},
               {"temperature", r.temperature}, {"top_p", r.top_p}};
  if (fixed.logprobs) body["logprobs"] = 1;
  // Of 31 bits: some servers' are signed numbers of 32.
  if (ask.with_seed && r.temperature > 0) body["seed"] = bridge::seed_at(r.seed, made) >> 33;
  if (form.keys != Form::plain) add_filters(body, ask);
  if (form.keys == Form::strict) body["detokenize"] = false;  // then it tells token ids
  if (form.keys == Form::all) {
    body["return_token_ids"] = true;
    if (fixed.logprobs) body["return_tokens_as_token_ids"] = true;
  }
  for (const auto& [key, value] : fixed.extra.items()) body[key] = value;
  if (!form.token_ids) {
    body["prompt"] = text;
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  // Without a tree: prompts are long, and many at once.
  std::string written = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  written.back() = ',';
  written += R"("prompt":[)";
  list(written, r.prompt);
  list(written, ask.tokens);
  written.back() = ']';  // no prompt is empty
  return written += '}';
}

}  // namespace hexad::openai
