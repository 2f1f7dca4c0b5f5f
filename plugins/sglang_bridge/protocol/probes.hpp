// What an SGLang server is asked before it gets requests: what it is, what it has, and whether it is well.
#pragma once
#include <span>

#include "plugins/server_bridge/dialect.hpp"

namespace hexad::sglang {

std::span<const bridge::Probe> probes();

}  // namespace hexad::sglang
