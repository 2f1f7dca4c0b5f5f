// All that is known of other systems' configurations, for the commands that read one.
#pragma once
#include "core/config/compat.hpp"

namespace hexad::compat {

// ROLL's files, NeMo-RL's evaluations, the names of TRL, verl and OpenRLHF. Lives as long as the program.
const config::Compat& all();

}  // namespace hexad::compat
