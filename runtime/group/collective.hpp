// Collectives of the C table. Enqueued on the current stream; complete at return for host tensors.
#pragma once
#include "runtime/session.hpp"

namespace hexad::runtime {

hexad_code all_reduce(hexad_comm* comm, DLTensor* tensor, int32_t op);
hexad_code all_gather(hexad_comm* comm, const DLTensor* in, DLTensor* out);
hexad_code reduce_scatter(hexad_comm* comm, const DLTensor* in, DLTensor* out);
hexad_code broadcast(hexad_comm* comm, DLTensor* tensor, int32_t root);
hexad_code barrier(hexad_comm* comm);

// Sends and receives between any two ranks of a group, all at once: how weights go from layout to layout.
hexad_code exchange(hexad_comm* comm, const hexad_transfer* sends, int64_t num_sends, const hexad_transfer* receives,
                    int64_t num_receives);

}  // namespace hexad::runtime
