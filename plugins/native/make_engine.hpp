// The engine that a configuration asks for: its model, executor, weights and KV cache.
#pragma once
#include <memory>

#include "plugins/native/engine.hpp"
#include "plugins/native/settings.hpp"

namespace hexad::native {

// The model of settings.model_name, the whole one; settings.max_length becomes the model's own where it is 0. Throws
// modeling::Error, and sdk::Error (unimplemented) for a model that the native generator cannot run.
modeling::ModelConfig load_model(Settings& settings);

// With the weights of the model's folder, where it has any and settings.weights_follow is false. The cache has the
// blocks that kv_cache_gb pays for; without that key as many as max_num_seqs sequences of max_length can use, within a
// share of the memory that is free now; in a replica as many as every rank can have. Collective over the replica. Logs
// a warning where one sequence of max_length does not fit. Throws sdk::Error (resource exhausted) where not one block
// does. LibTorch's current stream is the call's.
std::unique_ptr<Engine> make_engine(const sdk::Call& call, const Settings& settings, const modeling::ModelConfig& model,
                                    const Replica& replica);

}  // namespace hexad::native
