// The parts of level 5 for generators. Each runs requests of its own on `self`.
#pragma once
#include "sdk/verify/findings.hpp"
#include "sdk/verify/case/generator_case.hpp"

namespace hexad::verify {

constexpr int64_t kNewTokens = 8;

bool ok(const Answers& answers, const std::string& what, Findings& findings);

// Probabilities are those of the distribution that was drawn from; a stop token ends and is kept.
void check_draws(const Subject& subject, void* self, Findings& findings);
// Events stay as they are until they are released, and no more come than there is room for.
void check_events(const Subject& subject, void* self, Findings& findings);
// An update takes effect as a whole when it is committed, and not at all otherwise.
void check_refit(const Subject& subject, void* self, Findings& findings);

}  // namespace hexad::verify
