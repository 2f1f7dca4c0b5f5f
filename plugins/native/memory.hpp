// How many blocks the KV cache has.
#pragma once
#include "modeling/family/model_config.hpp"
#include "plugins/native/settings.hpp"

namespace hexad::native {

// Blocks in kv_cache_gb; without it, as many as max_num_seqs sequences of max_length can use, within a share of the
// memory that is free now. `settings.max_length` is resolved. Throws sdk::Error (resource exhausted) for less than one.
int64_t count_blocks(const Settings& settings, const modeling::ModelConfig& config);

}  // namespace hexad::native
