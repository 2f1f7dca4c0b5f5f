// What is asked of an SGLang server before it is given weights.
#pragma once
#include "plugins/server_bridge/fleet/control.hpp"

namespace hexad::sglang {

// Ranks of a server that take weights: those of its tensor parallelism. `on_gpu`: weights come to its GPUs. Throws
// sdk::Error where it has ranks of another kind, has no GPU, or does not say.
int ranks_of(bridge::Control& control, const bridge::Target& target, bool on_gpu, bridge::Seconds deadline);

}  // namespace hexad::sglang
