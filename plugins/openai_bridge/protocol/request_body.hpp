// A request as the /v1/completions of OpenAI-compatible servers has it, in the forms that one or the other takes.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "plugins/server_bridge/protocol/exchange.hpp"

namespace hexad::openai {

struct Form {
  enum Keys {
    all,     // OpenAI's, and more for servers that pass over those that they do not know: vLLM, llama.cpp, MLX
    strict,  // OpenAI's, and those of TensorRT-LLM, which refuses others
    plain    // OpenAI's
  };
  std::string_view name;
  bool token_ids;  // the prompt; else it is text
  Keys keys;
};

// The richest first: the first that a server takes is its own.
inline constexpr Form kForms[] = {{"token ids and vLLM's keys", true, Form::all},
                                  {"token ids and TensorRT-LLM's keys", true, Form::strict},
                                  {"token ids and OpenAI's keys", true, Form::plain},
                                  {"text and vLLM's keys", false, Form::all},
                                  {"text and OpenAI's keys", false, Form::plain}};

// Of that name; throws std::out_of_range.
const Form& form_named(std::string_view name);

// What is the same in every request.
struct Fixed {
  std::string model;
  bool logprobs = false;
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();  // further keys, or other values
};

// One sample, in one answer. `text`: the prompt, where the form wants it.
std::string request_body(const Form& form, const Fixed& fixed, const bridge::Ask& ask, const std::string& text);

}  // namespace hexad::openai
