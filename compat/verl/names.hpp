// What verl calls a setting, and which key it is here, or what there is instead.
#pragma once
#include <span>

#include "core/config/schema/schema.hpp"

namespace hexad::compat {

// Whole paths, and sections ("trainer.") for all that has no row of its own. docs/from_verl.md has them in prose.
std::span<const config::OtherName> verl_names();

}  // namespace hexad::compat
