// The replica that this worker is in.
#pragma once
#include <hexad/services.hpp>

#include "plugins/native/parallel/replica.hpp"

namespace hexad::native {

// `ranks` neighbours of the host's world each. Collective over the world, unless `ranks` is 1. Throws modeling::Error
// when the world does not divide into such replicas.
Replica make_replica(const sdk::Call& call, int64_t ranks);

}  // namespace hexad::native
