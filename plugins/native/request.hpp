// A request of the host, checked, as the generator goes through with it.
#pragma once
#include <hexad/abi.h>

#include <cstdint>
#include <memory>

#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

// A copy of everything that `request` points to; the sequence's tokens are its prompt. Throws sdk::Error (invalid
// argument), with the request's id, for what no model of a vocabulary of this size can run: an empty prompt, a token
// outside of the vocabulary, max_new_tokens below 1, sampling parameters out of their ranges, an empty stop string.
std::unique_ptr<Sequence> make_sequence(const hexad_request& request, int64_t vocab_size);

}  // namespace hexad::native
