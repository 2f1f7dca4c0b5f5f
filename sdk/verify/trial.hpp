// A small piece of work that an instance of every kind can do, for the levels that do not care what is computed.
#pragma once
#include <string>

#include "sdk/verify/engine.hpp"

namespace hexad::verify {

struct Trial {
  hexad_code code = HEXAD_OK;
  std::string text;    // of the error
  std::string bits;    // of the outputs: equal bits give equal text
  std::string damage;  // what was written that may not be; empty if nothing
};

// A loss computes two sequences, a backend their log-probs, a generator draws greedily, an environment
// scores. `grown`: with the structs of a later minor (losses, environments).
Trial run_trial(const Subject& subject, void* instance, const CallOptions& options = {}, bool grown = false);

}  // namespace hexad::verify
