// Process groups: gloo for host tensors, NCCL beside it for CUDA tensors.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/session.hpp"

namespace hexad::runtime {

// Makes the group of `ranks` (world ranks, this process among them, at least two). Blocks until every member came or
// the session's timeout passed. `name` is unique among the session's groups and the same on every member.
std::unique_ptr<hexad_comm> make_comm(const Session& session, const std::vector<int32_t>& ranks,
                                      const std::string& name);
// Ends the group's threads and communicators; does not wait for other ranks.
void end_comm(hexad_comm& comm);

hexad_code comm_axis(const char* axis, hexad_comm** out);
hexad_code comm_new(const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out);
hexad_code comm_across(const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out);
int32_t comm_rank(const hexad_comm* comm);
int32_t comm_size(const hexad_comm* comm);
hexad_code comm_native(hexad_comm* comm, const char* kind, void** out);

}  // namespace hexad::runtime
