// Which token each position of packed sequences predicts, and where its log-prob belongs.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// ids int64 [T], cu_seqlens int64 [B + 1] on the host -> int64 [T] on ids' device: the token after each position, -1 at
// the last position of each sequence.
at::Tensor next_token_targets(const at::Tensor& ids, const at::Tensor& cu_seqlens);

// Moves values at the predicting position (head_logprobs' rows under next_token_targets) to the predicted token:
// position i holds the log-prob of token i, 0 at each sequence start. [T] -> [T], differentiable.
at::Tensor at_predicted_token(const at::Tensor& values);

}  // namespace hexad::modeling
