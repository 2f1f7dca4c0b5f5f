// Outputs by name, and the host's loss: tensors out over the ABI, gradients back.
#pragma once
#include <span>

#include <hexad/backend.hpp>

#include "modeling/op/logprob_head.hpp"

namespace hexad::modeling {

// The outputs that a model makes: of a reward head sequence_scores, of every other model all but that.
std::span<const char* const> output_names(bool reward_head);

// Makes the head compute the output `name`. Throws sdk::Error for an unknown name.
void request_output(const char* name, LogprobOptions& options);
const at::Tensor& output_named(const LogprobResult& result, const char* name);

// Calls the loss of micro-batch `index` with the outputs that args asks for and returns its gradients.
LogprobResult loss_gradient(const sdk::Call& call, const hexad_train_args& args, int64_t index,
                            const LogprobResult& outputs);

}  // namespace hexad::modeling
