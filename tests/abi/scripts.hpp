// What the ABI tests do with a plugin, whoever wrote it: a fixed sequence of calls through today's host, told as JSON.
// The recorded answers of frozen plugins depend on these sequences. To test more, add a script; do not change one.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "core/plugin/loader.hpp"

namespace abi_test {

using Json = nlohmann::ordered_json;

// Plan, two steps, resumption from saved state, advantages, a bad batch. Needs of the inputs at most logprobs,
// prev_logprobs, advantages, token_mask.
Json run_loss(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config);
// Forward, training, kept weights, checkpoint, export, memory, weights that were never kept. Vocabulary of 4.
Json run_backend(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config);
// Requests, cancelling, refit, sleep, an update without weights. Vocabulary of 4.
Json run_generator(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config);
// Scores of four samples, of a part of them, of none; host metrics. Reads every field of a sample.
Json run_environment(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config);

// The script of the plugin's kind.
Json run_script(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config);

}  // namespace abi_test
