// A backend on two ranks.
#pragma once
#include "sdk/verify/engine.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::verify {

// Two instances on two threads, each with one micro-batch of a global batch: the gradient is that of one rank with
// both. Every service of communication fails in turn, in create and in a step: code and text, and the next step is as
// it would have been.
// A backend that refuses the group with a text is left alone.
void check_group(const Subject& subject, Findings& findings);

}  // namespace hexad::verify
