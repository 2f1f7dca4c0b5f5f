// vllm_cfg and vllm_kwargs as the command line and the environment of a server.
#pragma once
#include <dlpack.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plugins/vllm_bridge/fp8/recipe.hpp"

namespace hexad::vllm {

// All but the model, address and port. `kwargs` are vLLM's own names: {enable_foo: true} is --enable-foo, false
// --no-enable-foo, a map its JSON; they come last and win. Throws sdk::Error for what a server must not be given.
std::vector<std::string> server_arguments(const nlohmann::ordered_json& vllm_cfg, const nlohmann::ordered_json& kwargs,
                                          bool cuda);

// A server on CUDA is given one device, unless `env_vars` names more. Throws sdk::Error for a layout over several.
void refuse_several_devices(const nlohmann::ordered_json& vllm_cfg, const nlohmann::ordered_json& kwargs,
                            const nlohmann::ordered_json& env_vars);

// What a server of weights in FP8 is started with, into both: hf_overrides of the user's own stay. Throws sdk::Error
// where `kwargs` ask for another quantization.
void add_quantization(const fp8::Recipe& recipe, nlohmann::ordered_json& vllm_cfg, nlohmann::ordered_json& kwargs);

// A speculative_config of no tokens is NeMo-RL's way to have none.
void drop_no_speculation(nlohmann::ordered_json& kwargs);

// CUDA IPC reaches the GPU of this rank alone. Throws sdk::Error for a server over several with that transport.
void refuse_ipc_of_several(const std::string& transport, const nlohmann::ordered_json& vllm_cfg,
                           const nlohmann::ordered_json& kwargs);

// What is set beside the environment of this process: `more`, and `env_vars`, which win.
std::map<std::string, std::string> server_environment(const nlohmann::ordered_json& env_vars, DLDevice device,
                                                      const std::map<std::string, std::string>& more = {});

// Keys of ranks of a server, each with one where it is not there.
inline constexpr const char* kSizes[] = {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"};

}  // namespace hexad::vllm
