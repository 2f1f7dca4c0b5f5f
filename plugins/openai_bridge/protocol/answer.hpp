// The answers of /v1/completions. Servers tell the tokens of one in different ways, or not at all:
//
//   token_ids                                  vLLM (return_token_ids), TensorRT-LLM (detokenize: false)
//   logprobs.content[].id                      llama.cpp, MLX
//   logprobs.tokens, as "token_id:N"           vLLM (return_tokens_as_token_ids)
//   logprobs.tokens, as texts                  OpenAI and what follows it closely
//   text                                       every one
//
// The first that is there counts. Of texts ids are made by the tokenizer of the run's model.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "plugins/openai_bridge/text_tokens.hpp"
#include "plugins/server_bridge/protocol/exchange.hpp"

namespace hexad::openai {

enum class Tells { token_ids, token_texts, text };

// What an answer tells its tokens by. Of one that is none: text.
Tells tells_by(std::string_view body);

// What was asked.
struct Asked {
  int64_t prompt = 0, most = 0;            // tokens
  bool logprobs = false;                   // each token is to have one; else they are 0, and say nothing
  bool text_prompt = false;                // a sample cannot go on from tokens
  std::span<const int32_t> stop_ids = {};  // the first of them ends it, whatever the server made of them
  int64_t vocabulary = 0;                  // ids are below; 0: not looked at
};

// The whole sample. Throws std::runtime_error that says what is wrong with the answer.
bridge::Chunk read_answer(std::string_view body, const Asked& asked, const TextTokens& text);

// What the answer says in plain text; "": nothing.
std::string text_in(std::string_view body);

}  // namespace hexad::openai
