// The events of SGLang's stream, each of which repeats what those before it have said.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "plugins/server_bridge/protocol/exchange.hpp"

namespace hexad::sglang {

// What is new in an event after the tokens `known`. Throws std::runtime_error that says what is wrong with it.
bridge::Chunk read_event(std::string_view data, std::span<const int32_t> known);

}  // namespace hexad::sglang
