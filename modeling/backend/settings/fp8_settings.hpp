// FP8 training: `fp8_cfg` of a backend's section.
#pragma once
#include <hexad/services.hpp>

#include "modeling/op/fp8/fp8.hpp"

namespace hexad::modeling {

// `section`: "megatron_cfg"; `recipe`: what an absent fp8_recipe means. Throws sdk::Error: wrong values, recipes and
// parameters in FP8, which are not available.
Fp8 read_fp8(const sdk::Config& config, const std::string& section, const char* recipe);

}  // namespace hexad::modeling
