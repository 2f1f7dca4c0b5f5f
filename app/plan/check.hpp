// What `hexad config check` and `hexad train` say of memory before anything starts, and of a run that ran out of it.
#pragma once
#include <string>
#include <vector>

#include "app/plan/room.hpp"
#include "core/config/check.hpp"

namespace hexad::plan {

// An error where what a rank holds through the whole run exceeds a room that is meant, a notice where the largest phase
// does; each with what is needed, what is there and the keys that help most. Nothing where either is not known.
std::vector<config::Problem> check_memory(const config::Loaded& loaded, const Room& room);

// Whether a run ended for want of memory, by what its error says: CUDA's words, LibTorch's of a host, std::bad_alloc's.
bool is_out_of_memory(const std::string& message);

// The error of a run with what helps: of one that ran out of memory, the keys that save most, on a line of its own.
// `root`: the resolved configuration. Starts no process.
std::string with_advice(const std::string& message, const yaml::Node& root, const Room& room);

}  // namespace hexad::plan
