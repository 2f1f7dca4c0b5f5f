// Per-token arrays that a generator gives along with its completions (hexad_completion.columns), as one batch.
#pragma once
#include <string>
#include <vector>

#include <hexad/abi.h>

#include "core/data/batch.hpp"

namespace hexad::cluster {

// The columns of one completion, copied: a batch of one sample of prompt_tokens + completion.count tokens. Empty of
// columns where there are none. Throws Error(plugin), which begins with `label`, for one that is not as the ABI has it.
data::Batch columns_of(const std::string& label, const hexad_completion& completion, int64_t prompt_tokens);

// All of them in this order. Throws Error(plugin) unless they have the same columns.
data::Batch join_columns(const std::string& label, const std::vector<data::Batch>& parts);

}  // namespace hexad::cluster
