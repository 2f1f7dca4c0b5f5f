// The events that a healthy stream is made of, read in one pass: thousands come every second.
#pragma once
#include <optional>
#include <string_view>

#include "plugins/vllm_bridge/protocol/generation_api.hpp"

namespace hexad::vllm {

// What parse_chunk would say to the event; nothing if there is anything unusual about it: then parse_chunk is to judge.
std::optional<Chunk> read_usual_event(GenerationApi api, std::string_view data);

}  // namespace hexad::vllm
