// Collectives of the C table. Enqueued on the current stream; complete at return for host tensors.
#pragma once
#include "runtime/session.hpp"

namespace hexad::runtime {

hexad_code all_reduce(hexad_comm* comm, DLTensor* tensor, int32_t op);
hexad_code all_gather(hexad_comm* comm, const DLTensor* in, DLTensor* out);
hexad_code reduce_scatter(hexad_comm* comm, const DLTensor* in, DLTensor* out);
hexad_code broadcast(hexad_comm* comm, DLTensor* tensor, int32_t root);
hexad_code barrier(hexad_comm* comm);

}  // namespace hexad::runtime
