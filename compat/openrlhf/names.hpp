// What OpenRLHF calls a setting, and which key it is here, or what there is instead.
#pragma once
#include <span>

#include "core/config/schema/schema.hpp"

namespace hexad::compat {

// Flags of train_ppo_ray, as they were up to 0.10 (`--init_kl_coef`) and are since (`--algo.kl.init_coef`).
std::span<const config::OtherName> openrlhf_names();

}  // namespace hexad::compat
