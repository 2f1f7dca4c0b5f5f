// Outputs of the head between the rows that a rank computes and the tokens that the host sees.
#pragma once
#include "modeling/backend/micro_batch.hpp"
#include "modeling/op/logprob_head.hpp"

namespace hexad::modeling {

// Values at the predicting position of this rank's tokens (head_logprobs under batch.targets) -> [T] of all tokens, at
// the predicted token, 0 at each sequence's start; scores of sequences stay as they are. Collective over the
// context-parallel group; without gradients.
LogprobResult to_tokens(const MicroBatch& batch, const LogprobResult& rows, const Group& context = {});

// The way back for gradients: what each of this rank's values gets of [T].
LogprobResult to_rows(const MicroBatch& batch, const LogprobResult& tokens);

}  // namespace hexad::modeling
