// Numbers by which ranks tell whether they have the same: one differs where anything in it does, but for chance.
#pragma once
#include <cstdint>

#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

inline uint64_t mixed(uint64_t digest, uint64_t value) { return (digest ^ value) * 0x9E3779B97F4A7C15u; }

// Of all that decides what is drawn for a request, with whom it shares a prompt, and when it ends.
uint64_t digest_of(const Request& request);

}  // namespace hexad::native
