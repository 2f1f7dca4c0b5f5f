// Ends completions at a text. The bridge looks for it itself: a server may have no tokenizer, and may not keep what it
// has seen when a request moves on.
#pragma once
#include <hexad/stop_strings.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hexad::bridge {

// The smallest count in (examined, tokens.size()] whose text holds a stop string, as the token that completes it is the
// last of a completion; 0 if there is none. The first `examined` tokens are known to hold none.
int64_t find_stop(const std::vector<int32_t>& tokens, int64_t examined, const std::vector<std::string>& stops,
                  const sdk::Detokenize& detokenize);

}  // namespace hexad::bridge
