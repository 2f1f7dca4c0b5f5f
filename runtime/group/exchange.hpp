// Sends and receives between any two ranks of a group, all at once: how weights go from layout to layout.
#pragma once
#include "runtime/session.hpp"

namespace hexad::runtime {

hexad_code exchange(hexad_comm* comm, const hexad_transfer* sends, int64_t num_sends, const hexad_transfer* receives,
                    int64_t num_receives);

}  // namespace hexad::runtime
