// Rows of a micro-batch as routers see them.
#pragma once
#include "modeling/backend/micro_batch.hpp"
#include "modeling/parallel/tensor/parallel.hpp"

namespace hexad::modeling {

// Of this rank's rows of `batch`, which was made from `from`; with sequence parallelism of its run of them.
// `stands_in`: the batch fills up a schedule, and no row of it counts.
RouterRows router_rows(const MicroBatch& batch, const hexad_batch& from, const TensorParallel& tp, bool stands_in);

}  // namespace hexad::modeling
