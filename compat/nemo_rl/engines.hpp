// The engines of NeMo-RL's that train and generate, as its files name them.
#pragma once
#include <span>
#include <string_view>

#include "core/config/compat.hpp"

namespace hexad::compat {

// Sections of its files, each with the engine whose they are. A plugin that is installed and has that name declares the
// section itself; what stands here is for a machine without it.
std::span<const config::OtherSection> nemo_rl_sections();

// Values of `policy.generation.backend` for which there is no plugin of ours: read as the default generator.
std::span<const std::string_view> nemo_rl_engines();

}  // namespace hexad::compat
