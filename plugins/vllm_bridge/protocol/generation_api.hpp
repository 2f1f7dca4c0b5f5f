// The two APIs that give tokens for tokens: /inference/v1/generate, and /v1/completions of servers without it. Both are
// asked for one sample a request, streamed, with the log-prob of each sampled token.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plugins/server_bridge/protocol/exchange.hpp"

namespace hexad::vllm {

using bridge::Ask;
using bridge::Chunk;
using bridge::Request;

enum class GenerationApi { tokens, completions };

std::string_view path_of(GenerationApi api);
GenerationApi api_at(std::string_view path);

std::string body_of(GenerationApi api, const Ask& ask);

// One event of the stream. Throws std::runtime_error that says what is wrong with it.
Chunk parse_chunk(GenerationApi api, std::string_view data);

// The same for the events that a healthy stream is made of, in one pass, as thousands come every second
// (usual_event.cpp). Nothing if there is anything unusual about one: then parse_chunk is to judge.
std::optional<Chunk> read_usual_event(GenerationApi api, std::string_view data);

}  // namespace hexad::vllm
