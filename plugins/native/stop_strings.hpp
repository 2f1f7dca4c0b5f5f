// Ends a completion at a text.
#pragma once
#include <functional>
#include <string>

#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

using Detokenize = std::function<std::string(const int32_t* ids, int64_t count)>;

// Whether a stop string of the request has appeared in the text of what was sampled. To be asked after every token:
// only the text that can hold a new occurrence is looked at.
bool stops_at_text(const Sequence& sequence, const Detokenize& detokenize);

}  // namespace hexad::native
