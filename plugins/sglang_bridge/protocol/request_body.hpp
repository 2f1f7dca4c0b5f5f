// A request as SGLang's /generate has it.
#pragma once
#include <string>
#include <string_view>

#include "plugins/server_bridge/protocol/exchange.hpp"

namespace hexad::sglang {

// One sample, streamed with an event every `stream_interval` tokens, with the log-prob of each. One and not `n`: each
// has a name to be aborted by, and a seed.
std::string request_body(const bridge::Ask& ask, int64_t stream_interval);

// Whether a server of this version knows the key stream_interval, which others refuse: 0.5.23, where it was seen, or
// newer.
bool takes_stream_interval(std::string_view version);

}  // namespace hexad::sglang
