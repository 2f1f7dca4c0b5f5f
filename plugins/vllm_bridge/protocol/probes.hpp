// What a vLLM server is asked before it gets requests: whether it is well, what it is, and what it has.
#pragma once
#include <span>

#include "plugins/server_bridge/dialect.hpp"

namespace hexad::vllm {

std::span<const bridge::Probe> probes();

}  // namespace hexad::vllm
