// vllm_cfg and vllm_kwargs as the command line and the environment of a server.
#pragma once
#include <dlpack.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hexad::vllm {

// All but the model, address and port. `kwargs` are vLLM's own names: {enable_foo: true} is --enable-foo, false
// --no-enable-foo, a map its JSON; they come last and win. Throws sdk::Error for what a server must not be given.
std::vector<std::string> server_arguments(const nlohmann::ordered_json& vllm_cfg, const nlohmann::ordered_json& kwargs,
                                          bool cuda);

// A server on CUDA is given one device, unless `env_vars` names more. Throws sdk::Error for a layout over several.
void refuse_several_devices(const nlohmann::ordered_json& vllm_cfg, const nlohmann::ordered_json& kwargs,
                            const nlohmann::ordered_json& env_vars);

// What is set beside the environment of this process; `env_vars` wins.
std::map<std::string, std::string> server_environment(const nlohmann::ordered_json& env_vars, DLDevice device);

}  // namespace hexad::vllm
